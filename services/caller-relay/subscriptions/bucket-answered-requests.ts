import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { AnsweredRequestSchema } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import { casUpdate, createKey, readKey, removeKey } from "#runtime/bus/buckets/key-value.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { AnsweredRequests } from "../requests/answered-requests.ts";

const bucket = "toolbus_answers";
const keyOf = (sessionId: string, requestId: string) => `${sessionId}.${requestId}`;

export function createBucketAnsweredRequests(bus: Bus): AnsweredRequests {
  return {
    async write(sessionId, requestId, answered) {
      const [key, set] = [keyOf(sessionId, requestId), toBinary(AnsweredRequestSchema, answered)];
      if ((await createKey(bus, { bucket, key, value: set })).kind === "set") return;
      await casUpdate(bus, bucket, key, () => ({ set, result: undefined }));
    },
    async claim(sessionId, requestId, answered) {
      const value = toBinary(AnsweredRequestSchema, answered);
      return (await createKey(bus, { bucket, key: keyOf(sessionId, requestId), value })).kind === "set";
    },
    async read(sessionId, requestId) {
      const entry = await readKey(bus, bucket, keyOf(sessionId, requestId));
      return entry && fromBinary(AnsweredRequestSchema, entry.value);
    },
    async remove(sessionId, requestId) {
      const key = keyOf(sessionId, requestId);
      const entry = await readKey(bus, bucket, key);
      if (entry) await removeKey(bus, { bucket, key, revision: entry.revision });
    },
  };
}
