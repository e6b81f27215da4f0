import { hash } from "node:crypto";
import { textCodec } from "#runtime/bus/buckets/bucket.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { isRemoval } from "#runtime/bus/buckets/values.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { TaskEntry, TaskIndex } from "../../calls/records/task-index.ts";

const PLACE = { bucket: "toolbus_tasks", prefix: "", codec: textCodec } as const;
const SUBJECTS = `$KV.${PLACE.bucket}.`;

/** Who has the most entries loses the oldest of them when room gets short. */
export const TASK_EVICTION = {
  stream: `KV_${PLACE.bucket}`,
  holderOf: (subject: string) => subject.slice(SUBJECTS.length).split(".", 1)[0] ?? "",
};

/** An entry a task, under its principal: `<principal>.<call>`. */
export function createTaskIndex(bus: Bus, onFault: (fault: string) => void): TaskIndex {
  const bucket = createBucket<string>(bus, PLACE);
  return {
    async add({ principal, callId }) {
      try {
        await bucket.create(keyOf(principal, callId), callId);
      } catch (error) {
        if (!(error instanceof Failure) || error.reason !== "STORE_FULL") throw error;
        onFault(`task ${callId} is missing in the list of its principal's tasks: ${error.message}`);
      }
    },
    async read(principal, { after, limit, signal }) {
      const entries: TaskEntry[] = [];
      const subjects = `${SUBJECTS}${ownerOf(principal)}.*`;
      for await (const message of readSubject(bus, subjects, { fromSequence: after + 1, signal })) {
        if (isRemoval(message.headers)) continue;
        const callId = textCodec.decode(message.data);
        entries.push({ callId, place: message.sequence, createdAtMs: message.time.getTime() });
        if (entries.length >= limit) break;
      }
      return entries;
    },
    async remove(principal, { callId, place }) {
      await bucket.remove(keyOf(principal, callId), place);
    },
  };
}

function keyOf(principal: string, callId: string): string {
  return `${ownerOf(principal)}.${callId}`;
}

function ownerOf(principal: string): string {
  return hash("sha256", principal, "base64url").slice(0, 22);
}
