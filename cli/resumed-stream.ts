import { Code, ConnectError } from "@connectrpc/connect";
import { createBackoff } from "#runtime/time/backoff.ts";
import { delay } from "#runtime/time/delay.ts";

const patienceMs = 15_000;

/**
 * A stream without an end, opened again where it broke. `open` is given the place to go on from, which `placeAfter` reads
 * from each answer. Without any answer for a while, the fault is thrown.
 */
export async function* resumedStream<T, P>(
  start: P,
  open: (place: P) => AsyncIterable<T>,
  placeAfter: (answer: T) => P,
): AsyncGenerator<T> {
  const backoff = createBackoff({ initialMs: 100, maxMs: 2_000 });
  let place = start;
  for (let lastNewsAt = Date.now(); ; ) {
    try {
      for await (const answer of open(place)) {
        yield answer;
        place = placeAfter(answer);
        lastNewsAt = Date.now();
        backoff.reset();
      }
    } catch (error) {
      const isPassing = error instanceof ConnectError && error.code === Code.Unavailable;
      if (!isPassing || Date.now() - lastNewsAt > patienceMs) throw error;
    }
    await delay(backoff.next());
  }
}
