import { type HealthCheck, HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { type Clock, systemClock } from "#runtime/time/clock.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** What the checks of one link have found. */
export interface HealthFinding {
  health: HealthState;
  latencyMs: number;
  /** Why it is not green. */
  reason: string;
  checkedAtMs: number;
}

const GREEN_MS = 1_000;
const DEFAULT_INTERVAL_MS = 30_000;
const DEFAULT_TIMEOUT_MS = 5_000;

/** Green: answered within a second. Yellow: slower, or one miss. Red: two misses in a row. */
export function decideHealth(misses: number, latencyMs: number): HealthState {
  if (misses >= 2) return HealthState.UNHEALTHY;
  return misses === 1 || latencyMs > GREEN_MS ? HealthState.DEGRADED : HealthState.HEALTHY;
}

export interface HealthWatchOptions {
  healthCheck: HealthCheck;
  check: (signal: AbortSignal) => Promise<void>;
  onFinding: (finding: HealthFinding) => void;
  signal: AbortSignal;
  clock?: Clock;
}

/** Checks at once and then again and again, for as long as the signal allows. */
export async function watchHealth(options: HealthWatchOptions): Promise<void> {
  const { healthCheck, signal, clock = systemClock } = options;
  const timeoutMs = msFromDuration(healthCheck.timeout) ?? DEFAULT_TIMEOUT_MS;
  let misses = 0;
  let latencyMs = 0;
  while (!signal.aborted) {
    const startedAt = clock.now();
    const failure = await checkOnce(options, timeoutMs, clock);
    if (signal.aborted) return;
    misses = failure === undefined ? 0 : misses + 1;
    if (failure === undefined) latencyMs = clock.now() - startedAt;
    const health = decideHealth(misses, latencyMs);
    const slow = latencyMs > GREEN_MS ? `answered after ${Math.round(latencyMs)} ms` : "";
    const missed = misses > 1 ? `${misses} checks missed: ${failure}` : failure;
    options.onFinding({ health, latencyMs, reason: missed ?? slow, checkedAtMs: clock.now() });
    await clock.delay(msFromDuration(healthCheck.interval) ?? DEFAULT_INTERVAL_MS, signal).catch(() => {}); // the loop looks at the signal
  }
}

/** Why the server did not answer; undefined when it did. */
async function checkOnce(options: HealthWatchOptions, timeoutMs: number, clock: Clock): Promise<string | undefined> {
  const over = new AbortController();
  const timeUp = `no answer within ${timeoutMs} ms`;
  try {
    const checked = unlessAborted(options.check(over.signal), options.signal);
    return (await comesWithin(timeoutMs, checked, clock)) ? undefined : timeUp;
  } catch (error) {
    return messageFromUnknown(error);
  } finally {
    over.abort(new Error(timeUp));
  }
}
