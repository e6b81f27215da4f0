import { refuse } from "#runtime/failure/failure.ts";
import { type Backoff, createBackoff } from "#runtime/time/retry/backoff.ts";
import type { PoolTimes } from "../config.ts";

/** So many crashes in a row, with no answer between them, are met by starting again at once. */
const FREE_CRASHES = 2;

/** When a process that keeps crashing may be started again. */
export class CrashBackoff {
  readonly #backoff: Backoff;
  #crashes = 0;

  constructor({ backoffMs, maxBackoffMs }: Pick<PoolTimes, "backoffMs" | "maxBackoffMs">) {
    this.#backoff = createBackoff({ initialMs: backoffMs, maxMs: maxBackoffMs });
  }

  /** Gives the time of the next start; undefined for at once. */
  noteCrash(): number | undefined {
    this.#crashes += 1;
    return this.#crashes > FREE_CRASHES ? Date.now() + this.#backoff.next() : undefined;
  }

  /** What crashed before is over: a process answered, or has other code. */
  reset(): void {
    this.#crashes = 0;
    this.#backoff.reset();
  }
}

/** Throws `unavailable` until the time of the next start. */
export function refuseBackedOff(retryAtMs: number, last: string): void {
  const leftMs = retryAtMs - Date.now();
  if (leftMs <= 0) return;
  refuse("unavailable", `it keeps failing and is started again in ${leftMs} ms; last: ${last}`, {
    reason: "WORKER_BACKED_OFF",
    metadata: { retry_in_ms: String(leftMs) },
  });
}
