import { z } from "zod";
import type { CallerDeclaration } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { Clock } from "#runtime/time/clock.ts";

const callerStream = z.object({
  instance: z.string(),
  attachmentId: z.string(),
  /** As the caller names it; empty for one without a name. */
  streamId: z.string(),
  graceMs: z.int().min(0),
});
/** An open stream, and where it is. */
export type CallerStream = z.infer<typeof callerStream>;

/** `lost` as its instance says so, or is not there; `silent` where that does not answer, which may live. */
export type StreamState = "attached" | "lost" | "silent";

/** Where the streams of a session's caller are. The record decides; whoever holds another stream of the session closes it. */
export const streamRecord = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("open"), sessionId: z.string(), streams: z.array(callerStream).min(1) }),
  /** The last stream ended; requests wait for the caller until the grace is over. */
  z.object({ kind: z.literal("away"), sessionId: z.string(), graceMs: z.int().min(0), endedAtMs: z.number() }),
]);
export type StreamRecord = z.infer<typeof streamRecord>;

/** By session. */
export type StreamRecords = Bucket<StreamRecord>;

export function streamsOf(record: StreamRecord | undefined): CallerStream[] {
  return record?.kind === "open" ? record.streams : [];
}

/** With the stream, in place of one of the same name. */
export function withStream(
  sessionId: string,
  record: StreamRecord | undefined,
  stream: CallerStream,
): Extract<StreamRecord, { kind: "open" }> {
  const others = streamsOf(record).filter(({ streamId }) => streamId === "" || streamId !== stream.streamId);
  return { kind: "open", sessionId, streams: [...others, stream] };
}

/** The stream is no more. The last one is remembered for its grace; without one the session is forgotten. */
export async function endStream(
  { records, clock }: { records: StreamRecords; clock: Clock },
  sessionId: string,
  { attachmentId, graceMs }: CallerStream,
): Promise<void> {
  const { value, revision, hasChanged } = await records.update(sessionId, (record) => {
    const streams = streamsOf(record);
    const others = streams.filter((other) => other.attachmentId !== attachmentId);
    if (others.length === streams.length) return undefined;
    if (others.length > 0) return { kind: "open", sessionId, streams: others };
    return { kind: "away", sessionId, graceMs, endedAtMs: clock.now() };
  });
  if (hasChanged && value?.kind === "away" && graceMs === 0) await records.remove(sessionId, revision);
}

/** What is left of a session that was closed; gives how many streams it had. Whoever holds one sees that its record is gone. */
export async function forgetSession(
  { records, declared }: { records: StreamRecords; declared: Bucket<CallerDeclaration> },
  sessionId: string,
): Promise<number> {
  const found = await records.read(sessionId);
  await Promise.all([records.remove(sessionId), declared.remove(sessionId)]);
  return streamsOf(found?.value).length;
}
