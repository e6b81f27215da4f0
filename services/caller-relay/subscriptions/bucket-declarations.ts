import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { casUpdate, readKey, removeKey } from "#runtime/bus/buckets/key-value.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { readRecord } from "#runtime/bus/record.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Declarations } from "../delivery/relay.ts";
import type { Changes } from "../streams/changes.ts";

const bucket = "toolbus_callers";
const keyOf = (sessionId: string) => `declaration.${sessionId}`;

/** Under which each session's declaration stands, by the session's id. */
export const declarationsSubject = `$KV.${bucket}.${keyOf("*")}`;

/** Declarations in their bucket; `changes` tells of each session whose declaration was written or removed, by whichever instance. */
export function createBucketDeclarations(bus: Bus, changes: Changes): Declarations {
  const find = async (sessionId: string) => {
    const entry = await readKey(bus, bucket, keyOf(sessionId));
    if (entry === undefined) return undefined;
    const { value, revision } = entry;
    const place = { subject: `$KV.${bucket}.${keyOf(sessionId)}`, sequence: revision };
    return { declaration: readRecord(bus, place, () => fromBinary(CallerDeclarationSchema, value)), revision };
  };
  const read: Declarations["read"] = async (sessionId) => (await find(sessionId))?.declaration;

  const clear = async (sessionId: string): Promise<void> => {
    for (;;) {
      const found = await find(sessionId);
      if (found === undefined) return;
      if (await removeKey(bus, { bucket, key: keyOf(sessionId), revision: found.revision })) return;
    }
  };

  return {
    read,
    async write(sessionId, declaration) {
      if (declaration.tools.length === 0) return clear(sessionId);
      const set = toBinary(CallerDeclarationSchema, declaration);
      await casUpdate(bus, bucket, keyOf(sessionId), () => ({ set, result: undefined }));
    },
    async *follow(sessionId, signal) {
      for (;;) {
        using change = changes.next(sessionId); // what changes while it is read is told after it
        yield await read(sessionId);
        try {
          await unlessAborted(change.happened, signal);
        } catch {
          return; // the signal aborted
        }
      }
    },
  };
}
