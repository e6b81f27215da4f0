/**
 * Streams that outlive what serves them.
 *
 * resumed-1  A stream that breaks for a passing reason is opened again. All that came before has been taken by then: `open` knows by
 *     it where to go on, so that nothing comes twice and nothing is left out.
 * resumed-2  One that was quiet is not one that fails: the stream is given up, with its last error, when for `patienceMs` no opening has
 *     told anything or stood for a while. The last opening is tried right then.
 * resumed-3  What is not passing ends the stream, as does its own end. One that must not end by itself breaks there: its `open` says so.
 * resumed-4  Nobody waits for the next opening longer than `signal` and `stopping` let them.
 */

import { isUnavailable } from "../../failure/connect.ts";
import { delay } from "../../time/delay.ts";
import { openEnding } from "../../time/ending.ts";
import { createBackoff } from "../../time/retry/backoff.ts";

export interface Resumable<T> {
  readonly open: () => AsyncIterable<T>;
  /** Whether opening it again may help; what is `unavailable` unless told. */
  readonly isPassing?: (error: unknown) => boolean;
  readonly patienceMs: number;
  /** Aborts when nobody wants the stream any more, which ends with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Aborts when this process stops: what breaks from then on stays broken. */
  readonly stopping?: AbortSignal | undefined;
}

/** Of a call that somebody waits for: after the 3 s in which silence is noticed, its caller is told within 10 s. */
export const WAITED_MS = 6_500;

/** What stood for this long was served, though it may have had nothing to tell: a dead instance is noticed sooner. */
const standsAfterMs = 10_000;

export async function* resumed<T>(stream: Resumable<T>): AsyncGenerator<T> {
  const { open, isPassing = isUnavailable, patienceMs, signal, stopping } = stream;
  const backoff = createBackoff({ initialMs: 50, maxMs: 2_000 });
  let failingSinceMs: number | undefined;
  for (;;) {
    const openedAtMs = performance.now();
    try {
      for await (const message of open()) {
        failingSinceMs = undefined;
        yield message;
      }
      return;
    } catch (error) {
      const brokeAtMs = performance.now();
      if (failingSinceMs === undefined || brokeAtMs - openedAtMs > standsAfterMs) {
        failingSinceMs = brokeAtMs;
        backoff.reset();
      }
      const leftMs = failingSinceMs + patienceMs - brokeAtMs;
      if (!isPassing(error) || leftMs <= 0) throw error; // resumed-2, resumed-3
      using ending = openEnding(signal, stopping);
      await delay(Math.min(backoff.next(), leftMs), ending.signal).catch(() => {
        throw signal?.aborted ? signal.reason : error; // resumed-4
      });
    }
  }
}
