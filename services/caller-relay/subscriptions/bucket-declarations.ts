import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { casUpdate, readKey, removeKey } from "#runtime/bus/key-value.ts";
import { followSubject, lastSequenceOf } from "#runtime/bus/read.ts";
import type { Declarations } from "../relay.ts";

const bucket = "toolbus_callers";
const keyOf = (sessionId: string) => `declaration.${sessionId}`;

export function createBucketDeclarations(bus: Bus): Declarations {
  const find = async (sessionId: string) => {
    const entry = await readKey(bus, bucket, keyOf(sessionId));
    return entry && { declaration: fromBinary(CallerDeclarationSchema, entry.value), revision: entry.revision };
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
      const subject = `$KV.${bucket}.${keyOf(sessionId)}`;
      const last = await lastSequenceOf(bus, subject, signal);
      yield await read(sessionId);
      for await (const _ of followSubject(bus, subject, { fromSequence: last + 1, signal }))
        yield await read(sessionId);
    },
  };
}
