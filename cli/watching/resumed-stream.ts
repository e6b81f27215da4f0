import { connectError } from "#runtime/failure/connect.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";

const patienceMs = 15_000;

/**
 * A stream without an end, opened again where it broke. `open` is given the place to go on from, which `placeAfter` reads
 * from each answer; an answer that says nothing of it leaves the place as it was.
 */
export async function* resumedStream<T, P>(
  start: P,
  open: (place: P) => AsyncIterable<T>,
  placeAfter: (answer: T, place: P) => P,
): AsyncGenerator<T> {
  let place = start;
  async function* openAtPlace() {
    yield* open(place);
    throw connectError("unavailable", "the stream ended", { reason: "STREAM_ENDED" });
  }
  for await (const answer of resumed({ open: openAtPlace, patienceMs })) {
    yield answer;
    place = placeAfter(answer, place);
  }
}
