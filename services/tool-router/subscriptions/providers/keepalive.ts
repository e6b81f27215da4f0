import { Failure } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { type Ending, openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";

/*
 * Signs of life of a peer that is frozen, or whose machine is gone: it closes nothing, and HTTP/1.1 cannot ask on a connection
 * that is in use. So it is asked on another one, as long as something is open there.
 *
 * keepalive-1  A peer with nothing open is not asked.
 * keepalive-2  Only a peer that was seen to answer beside something that was open can be missed: one that does one thing at a time
 *     answers nothing meanwhile, and lives.
 * keepalive-3  Two questions in a row without an answer end what is open; every message of it is an answer, too.
 */

export interface Keepalive {
  /** Reads a stream of the peer's, which ends with `unavailable` when the peer falls silent. */
  during<T>(open: (signal: AbortSignal) => AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T>;
}

export interface KeepaliveTimes {
  /** After something was opened, unless the peer is known to answer. */
  readonly firstMs: number;
  readonly everyMs: number;
  readonly answerMs: number;
}

const TIMES: KeepaliveTimes = { firstMs: 200, everyMs: 2_000, answerMs: 3_000 };
const MOST_MISSES = 2;

/** `ask` resolves with any answer of the peer. */
export function createKeepalive(
  ask: (signal: AbortSignal) => Promise<unknown>,
  times: KeepaliveTimes = TIMES,
): Keepalive {
  const open = new Set<Ending>();
  let hasAnswered = false;
  let misses = 0;
  let idle = new AbortController();

  async function probeUntilIdle(signal: AbortSignal): Promise<void> {
    misses = 0;
    await delay(hasAnswered ? times.everyMs : times.firstMs, signal);
    while (!signal.aborted) {
      const isAnswer = await isAnswered(signal);
      if (signal.aborted) return;
      hasAnswered ||= isAnswer;
      misses = isAnswer ? 0 : misses + 1;
      if (hasAnswered && misses >= MOST_MISSES) for (const ending of open) ending.end(silence());
      await delay(times.everyMs, signal);
    }
  }

  async function isAnswered(signal: AbortSignal): Promise<boolean> {
    using limit = timeoutSignal(times.answerMs);
    using ending = openEnding(signal, limit);
    try {
      await ask(ending.signal);
      return true;
    } catch {
      return !limit.aborted; // a refused or broken connection ends what is open by itself
    }
  }

  function enter(ending: Ending): void {
    open.add(ending);
    if (open.size > 1) return;
    idle = new AbortController();
    probeUntilIdle(idle.signal).catch(() => {}); // its one failure is that nothing is open any more
  }

  return {
    async *during(start, signal) {
      using ending = openEnding(signal);
      enter(ending);
      try {
        for await (const one of start(ending.signal)) {
          misses = 0;
          yield one;
        }
      } catch (error) {
        const { reason } = ending.signal;
        throw reason instanceof PeerSilent ? reason : error;
      } finally {
        open.delete(ending);
        if (open.size === 0) idle.abort();
      }
    },
  };
}

class PeerSilent extends Failure {}

function silence(): Failure {
  return new PeerSilent("unavailable", "it has fallen silent: it answers nothing any more", {
    reason: "OUTCOME_UNKNOWN",
  });
}
