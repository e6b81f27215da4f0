import type { StoredMsg } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { refuse } from "../../failure/failure.ts";
import type { Bus } from "../bus.ts";
import type { StoredMessage } from "../streams/read.ts";
import { readRecord } from "../streams/record.ts";
import type { Change, Place } from "./bucket.ts";

/** What a message of a bucket says. */
export function changeFrom<T>(bus: Bus, { bucket, prefix, codec }: Place<T>, message: StoredMessage): Change<T> {
  const key = message.subject.slice(`$KV.${bucket}.${prefix}`.length);
  const revision = message.sequence;
  if (isRemoval(message.headers)) return { kind: "removed", key, revision };
  const value = readRecord(bus, message, () => codec.decode(message.data));
  return value === undefined ? { kind: "unreadable", key, revision } : { kind: "set", key, value, revision };
}

/** A removal, or what the server puts in the place of a value that was too old. An empty value is one. */
export function isRemoval(fields: MsgHdrs | undefined): boolean {
  return fields !== undefined && (fields.has("KV-Operation") || fields.has("Nats-Marker-Reason"));
}

/** What stands for a key, unless it was removed. */
export function valueMessage(message: StoredMsg | null): StoredMsg | undefined {
  return message === null || isRemoval(message.header) ? undefined : message;
}

/** BUCKET-4: of a key that somebody asks for. */
export function valueAt<T>(
  bus: Bus,
  { codec, unreadable = "lost" }: Place<T>,
  { subject, seq, data }: StoredMsg,
): T | undefined {
  if (unreadable === "absent") return readRecord(bus, { subject, sequence: seq }, () => codec.decode(data));
  try {
    return codec.decode(data);
  } catch (cause) {
    return refuse("data_loss", `what is stored under ${subject} cannot be read`, { reason: "RECORD_LOST", cause });
  }
}
