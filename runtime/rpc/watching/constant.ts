import { unlessAborted } from "../../time/unless-aborted.ts";

/** For a watch of what does not change: lasts until its caller leaves, or ends with what `stopping` says. */
export async function untilWatchEnds(caller: AbortSignal, stopping: AbortSignal): Promise<void> {
  await unlessAborted(new Promise<never>(() => {}), caller, stopping).catch(() => {}); // the end that was waited for
  stopping.throwIfAborted();
}
