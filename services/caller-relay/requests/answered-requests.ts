import type { AnsweredRequest } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";

/** Which submissions have won, by `keyOfRecord`, so that their repetition is told so, by any instance and after a crash. */
export type AnsweredRequests = Bucket<AnsweredRequest>;

/** In place of what stood there, of a request that is open again; mostly nothing does. */
export async function recordAnswered(bucket: AnsweredRequests, key: string, answered: AnsweredRequest): Promise<void> {
  if ((await bucket.create(key, answered)) === undefined) await bucket.put(key, answered);
}
