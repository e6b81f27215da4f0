import { z } from "zod";
import type { Bucket, Stored } from "#runtime/bus/buckets/bucket.ts";
import type { Clock } from "#runtime/time/clock.ts";

const base = z.object({ sessionId: z.string(), graceMs: z.int().min(0) });

/** Where the stream of a session's caller is. The record decides; whoever holds another stream of the session closes it. */
export const streamRecord = z.discriminatedUnion("kind", [
  base.extend({ kind: z.literal("attached"), instance: z.string(), attachmentId: z.string() }),
  /** The stream ended; requests wait for the caller until the grace is over. */
  base.extend({ kind: z.literal("detached"), endedAtMs: z.number() }),
]);
export type StreamRecord = z.infer<typeof streamRecord>;
export type AttachedRecord = Extract<StreamRecord, { kind: "attached" }>;

/** By session. */
export type StreamRecords = Bucket<StreamRecord>;

/** The stream is no more: with a grace it is remembered for that long, without one it is forgotten. */
export async function endStream(
  { records, clock }: { records: StreamRecords; clock: Clock },
  { key, value, revision }: Stored<AttachedRecord>,
): Promise<void> {
  const { sessionId, graceMs } = value;
  if (graceMs === 0) await records.remove(key, revision);
  else await records.replace(key, { kind: "detached", sessionId, graceMs, endedAtMs: clock.now() }, revision);
}
