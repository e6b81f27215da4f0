import type { CallerDeclaration } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { openPeriodic } from "#runtime/lifecycle/background.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { AttachingParts } from "./attaching.ts";
import type { Attachments } from "./attachments.ts";
import { type CallerStream, endStream, type StreamRecords } from "./stream-record.ts";

const pauseMs = 3_600_000;
/** A declaration is forgotten 7 days after it was written: one whose caller is attached is written again each day. */
const renewAfterMs = 24 * 3_600_000;
/** A grace that is over is kept a little longer, for clocks that differ. */
const skewMs = 60_000;
/** An instance that nobody finds may be on its way back to the bus. */
const returnMs = 10_000;

export interface UpkeepParts {
  attachments: Pick<Attachments, "all">;
  declared: Bucket<CallerDeclaration>;
  records: StreamRecords;
  clock: Clock;
  stateOf: AttachingParts["stateOf"];
}

/** Keeps what attached callers have declared, and removes what is remembered of lost streams, and of callers whose grace is over. */
export async function upkeep(
  { attachments, declared, records, clock, stateOf }: UpkeepParts,
  signal: AbortSignal,
): Promise<void> {
  for (const { sessionId } of attachments.all()) {
    const found = await declared.read(sessionId, signal);
    if (found === undefined || clock.now() - found.writtenAt.getTime() < renewAfterMs) continue;
    await declared.replace(sessionId, found.value, found.revision); // unless a newer one was written meanwhile
  }
  const silent = new Set<string>();
  const isLost = async ({ sessionId, stream }: { sessionId: string; stream: CallerStream }) => {
    if (silent.has(stream.instance)) return false;
    const state = await stateOf(stream, sessionId).catch(() => "silent"); // it is looked at again
    if (state === "silent") silent.add(stream.instance);
    return state === "lost";
  };
  const lost: Parameters<typeof isLost>[0][] = [];
  for await (const { key: sessionId, value, revision } of records.list({ signal })) {
    if (value.kind === "open")
      for (const stream of value.streams) if (await isLost({ sessionId, stream })) lost.push({ sessionId, stream });
    if (value.kind === "away" && value.endedAtMs + value.graceMs + skewMs <= clock.now())
      await records.remove(sessionId, revision);
  }
  if (lost.length > 0) await clock.delay(returnMs, signal);
  for (const one of lost) if (await isLost(one)) await endStream({ records, clock }, one.sessionId, one.stream);
}

/** Does that again and again, each instance at moments of its own. */
export function openUpkeep({
  onError,
  ...parts
}: UpkeepParts & { onError: (error: unknown) => void }): AsyncDisposable {
  return openPeriodic({ everyMs: pauseMs, work: (signal) => upkeep(parts, signal), onError });
}
