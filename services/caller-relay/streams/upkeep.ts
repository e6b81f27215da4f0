import type { CallerDeclaration } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { openPeriodic } from "#runtime/lifecycle/background.ts";
import { type AttachingParts, endLost } from "./attaching.ts";
import type { Attachments } from "./attachments.ts";

const pauseMs = 3_600_000;
/** A declaration is forgotten 7 days after it was written: one whose caller is attached is written again each day. */
const renewAfterMs = 24 * 3_600_000;
/** A grace that is over is kept a little longer, for clocks that differ. */
const skewMs = 60_000;

export interface UpkeepParts extends Pick<AttachingParts, "records" | "clock" | "isAttachedAt"> {
  attachments: Pick<Attachments, "all">;
  declared: Bucket<CallerDeclaration>;
}

/** Keeps what attached callers have declared, and removes what is remembered of lost streams, and of callers whose grace is over. */
export async function upkeep(
  { attachments, declared, records, clock, isAttachedAt }: UpkeepParts,
  signal: AbortSignal,
): Promise<void> {
  for (const { sessionId } of attachments.all()) {
    const found = await declared.read(sessionId, signal);
    if (found === undefined || clock.now() - found.writtenAt.getTime() < renewAfterMs) continue;
    await declared.replace(sessionId, found.value, found.revision); // unless a newer one was written meanwhile
  }
  for await (const { key, value, revision } of records.list({ signal })) {
    if (value.kind === "open") await endLost({ records, clock, isAttachedAt }, key);
    else if (value.endedAtMs + value.graceMs + skewMs <= clock.now()) await records.remove(key, revision);
  }
}

/** Does that again and again, each instance at moments of its own. */
export function openUpkeep({
  onError,
  ...parts
}: UpkeepParts & { onError: (error: unknown) => void }): AsyncDisposable {
  return openPeriodic({ everyMs: pauseMs, work: (signal) => upkeep(parts, signal), onError });
}
