import { z } from "zod";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";

/** What is known of a request whose answer did not come in time: enough to bring a late one to the agent's inbox. */
export const lateRequest = z.object({ agent: z.string(), tool: z.string() });
export type LateRequest = z.infer<typeof lateRequest>;

/** By `keyOfRequest`. */
export type LateRequests = Bucket<LateRequest>;
