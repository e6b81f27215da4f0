import type { AnsweredRequest } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";

/** Which submissions have won, by `keyOfRecord`, so that their repetition is told so, by any instance and after a crash. */
export type AnsweredRequests = Bucket<AnsweredRequest>;

/** What they say, by the same key. The oldest are forgotten first. */
export type AnsweredResults = Bucket<ToolResult>;

/** In place of what stood there, of a request that is open again; mostly nothing does. */
export async function record<T>(bucket: Bucket<T>, key: string, value: T): Promise<void> {
  if ((await bucket.create(key, value)) === undefined) await bucket.put(key, value);
}

/** One that is too large is not kept: it is lost to its call if its instance is. */
export async function recordResult(bucket: AnsweredResults, key: string, result: ToolResult): Promise<void> {
  await record(bucket, key, result).catch((error: unknown) => {
    if (failureFromConnectError(error).reason !== "MESSAGE_TOO_LARGE") throw error;
  });
}
