import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { type AppendOutcome, appendFenced, lastOf } from "#runtime/bus/streams/append.ts";
import { decideDueWork } from "../../calls/due-work/due.ts";
import { type CallRecord, decodeCall, encodeCall } from "../../calls/records/call-record.ts";
import type { CallStore, Updated } from "../../calls/records/records.ts";
import type { Documents, Part } from "../../catalogue/documents.ts";
import { createDocuments } from "../buckets/documents.ts";
import { dueHeader } from "./due-work.ts";
import { type RecentCall, RecentCalls } from "./recent-calls.ts";

const PLACE = { bucket: "toolbus_calls", prefix: "", codec: { encode: encodeCall, decode: decodeCall } } as const;

const subjectOf = (callId: string) => `$KV.${PLACE.bucket}.${callId}`;

/** Larger records are read by those who need them instead of being told. */
const MAX_TOLD_BYTES = 8_192;

/** A record of a session is written when the session is there; clocks may differ by so much. */
const CLOCKS_APART_MS = 3_600_000;

function partOf({ id, createdAtMs }: { id: string; createdAtMs: number }): Part {
  return { since: new Date(createdAtMs - CLOCKS_APART_MS), containing: bytesOfSession(id) };
}

/** How the session stands in a record. */
function bytesOfSession(id: string): Uint8Array {
  const { number } = ToolCallSchema.field.sessionId;
  return new BinaryWriter().tag(number, WireType.LengthDelimited).string(id).finish();
}

/** The records in their bucket, each with its due; and what is known of them without asking. */
export class StoredCalls implements Pick<CallStore, "read" | "readCached" | "create" | "update" | "list"> {
  readonly recent = new RecentCalls();
  readonly #bus: Bus;
  readonly #documents: Documents<CallRecord>;
  readonly #onDue: () => void;

  /** `onDue` is told that something was written that is due at once. */
  constructor(bus: Bus, onDue: () => void) {
    this.#bus = bus;
    this.#documents = createDocuments(bus, PLACE);
    this.#onDue = onDue;
  }

  async read(callId: string): Promise<CallRecord | undefined> {
    return (await this.#readFresh(callId))?.record;
  }

  async readCached(callId: string): Promise<CallRecord | undefined> {
    return this.recent.get(callId)?.record ?? this.read(callId);
  }

  async create(record: CallRecord): Promise<boolean> {
    return (await this.#write(record, undefined)).kind === "appended" || this.#createAnew(record);
  }

  async update(callId: string, decide: (record: CallRecord) => CallRecord | undefined): Promise<Updated | undefined> {
    for (let guess = this.recent.get(callId); ; guess = undefined) {
      const before = guess ?? (await this.#readFresh(callId));
      if (before === undefined) return undefined;
      const after = decide(before.record);
      if (after === undefined && guess !== undefined) continue; // a guess may be refuted
      if (after === undefined) return { before: before.record, record: before.record, hasChanged: false };
      const outcome = await this.#write(after, before);
      if (outcome.kind === "appended") return { before: before.record, record: after, hasChanged: true };
    }
  }

  list(signal: AbortSignal, session?: { id: string; createdAtMs: number }) {
    return this.#documents.list(signal, session && partOf(session));
  }

  /** This is what stands of a call, or did. */
  keep(record: CallRecord, revision: number, written?: Uint8Array): void {
    const bytes = written?.length ?? record.argumentsJson.length + (record.result?.outputJson.length ?? 0);
    if (bytes <= MAX_TOLD_BYTES) this.recent.put(record, revision);
    else this.recent.forget(record.callId);
  }

  async #readFresh(callId: string): Promise<RecentCall | undefined> {
    const found = await this.#documents.read(callId);
    if (found === undefined) return undefined;
    const { value: record, revision } = found;
    this.keep(record, revision);
    return { record, revision };
  }

  /** A record that has left leaves a marker for a while, which is no record. */
  async #createAnew(record: CallRecord): Promise<boolean> {
    const standing = await lastOf(this.#bus, subjectOf(record.callId));
    if (standing === null || standing.data.length > 0) return false;
    return (await this.#write(record, undefined, standing.seq)).kind === "appended";
  }

  async #write(
    record: CallRecord,
    before: RecentCall | undefined,
    expectedLastSequence = before?.revision ?? 0,
  ): Promise<AppendOutcome> {
    const bytes = encodeCall(record);
    const now = Date.now();
    const due = decideDueWork(record, before?.record, now);
    const outcome = await appendFenced(this.#bus, {
      subject: subjectOf(record.callId),
      expectedLastSequence,
      payload: bytes,
      headers: dueHeader(due),
    });
    if (outcome.kind === "conflict") return outcome;
    this.keep(record, outcome.sequence, bytes);
    if (due.kind === "check" && due.at <= now) this.#onDue();
    return outcome;
  }
}
