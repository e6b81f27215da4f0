import { z } from "zod";
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

export interface FoundRecord<R extends StreamRecord = StreamRecord> {
  record: R;
  revision: number;
}

export interface StreamRecords {
  read(sessionId: string): Promise<FoundRecord | undefined>;
  /** Whatever stands there; gives the record's revision, which grows. */
  put(record: StreamRecord): Promise<number>;
  /** Nothing happens, in both, when the record has another revision. */
  replace(revision: number, record: StreamRecord): Promise<void>;
  remove(sessionId: string, revision: number): Promise<void>;
}

/** The stream is no more: with a grace it is remembered for that long, without one it is forgotten. */
export async function endStream(
  { records, clock }: { records: StreamRecords; clock: Clock },
  { record, revision }: FoundRecord<AttachedRecord>,
): Promise<void> {
  const { sessionId, graceMs } = record;
  if (graceMs === 0) return records.remove(sessionId, revision);
  await records.replace(revision, { kind: "detached", sessionId, graceMs, endedAtMs: clock.now() });
}
