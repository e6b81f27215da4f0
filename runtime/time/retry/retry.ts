import { type Clock, systemClock } from "../clock.ts";
import { createBackoff } from "./backoff.ts";

interface RetryWaits {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly clock?: Clock | undefined;
}

export interface RetryOptions extends RetryWaits {
  /** How often it is tried at most, the first time included; without limit unless told. */
  readonly attempts?: number | undefined;
  /** An attempt that fails later than this is the last one; without limit unless told. */
  readonly patienceMs?: number | undefined;
  /** Ends the trying, with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Ends the wait between two attempts: one last attempt follows at once. */
  readonly closing?: AbortSignal | undefined;
  /** Told of each failure that another attempt follows. */
  readonly onRetry?: ((error: unknown, attempt: number) => void) | undefined;
}

/** Does something that may be done twice again while the condition holds for what it failed with; else throws that. */
export async function retryWhile<T>(
  condition: (error: unknown) => boolean,
  action: () => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  const { clock = systemClock, signal, closing, attempts = Number.POSITIVE_INFINITY } = options;
  const backoff = createBackoff(options);
  const givesUpAtMs = clock.now() + (options.patienceMs ?? Number.POSITIVE_INFINITY);
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await action();
    } catch (error) {
      signal?.throwIfAborted();
      const isLast = attempt >= attempts || closing?.aborted || clock.now() >= givesUpAtMs;
      if (isLast || !condition(error)) throw error;
      options.onRetry?.(error, attempt);
    }
    await clock.delay(backoff.next(), closing ?? signal).catch(() => {}); // both are looked at above
  }
}

export interface RepeatOptions extends RetryWaits {
  readonly signal: AbortSignal;
  /** Told of each failure before the signal aborts. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Does something that is to go on until the signal aborts, such as following a stream: whenever it ends or fails it begins
 * again, after a wait that grows until `works` is called. It gives `done` when it need not begin again. Never rejects.
 */
export async function repeatUntilAborted(
  action: (works: () => void) => Promise<unknown>,
  { signal, clock = systemClock, onError, ...waits }: RepeatOptions,
): Promise<void> {
  const backoff = createBackoff(waits);
  while (!signal.aborted) {
    try {
      if ((await action(backoff.reset)) === "done") return;
    } catch (error) {
      if (!signal.aborted) onError?.(error);
    }
    await clock.delay(backoff.next(), signal).catch(() => {}); // aborted: the loop's condition sees it
  }
}
