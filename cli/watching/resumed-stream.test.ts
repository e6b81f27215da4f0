import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { resumedStream } from "./resumed-stream.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const broken = () => new ConnectError("the gateway is gone", Code.Unavailable);

/** Plays one part at each opening; gives the places that were asked for. */
function createWatch(...parts: (() => AsyncIterable<number>)[]) {
  const asked: number[] = [];
  const open = (place: number) => {
    const part = parts[asked.length];
    asked.push(place);
    return part === undefined ? afterwards(0, broken()) : part();
  };
  return { asked, answers: resumedStream(1, open, (answer) => answer + 1) };
}

async function* telling(...answers: number[]): AsyncIterable<number> {
  yield* answers;
}

async function* afterwards(ms: number, failure: Error): AsyncIterable<number> {
  yield* telling();
  await delay(ms);
  throw failure;
}

test("a watch that was quiet for long and breaks is opened again where it stood", async () => {
  const minute = 60_000;
  const watch = createWatch(
    () => telling(1),
    () => afterwards(minute, broken()),
    () => telling(2),
  );
  const seen: number[] = [];
  const reading = (async () => {
    for await (const answer of watch.answers) if (seen.push(answer) === 2) return;
  })();
  await vi.advanceTimersByTimeAsync(2 * minute);
  await reading;
  expect(seen).toEqual([1, 2]);
  expect(watch.asked).toEqual([1, 2, 2]);
});

test("a watch that breaks as often as it is opened is given up after a while, one that is refused at once", async () => {
  const passing = createWatch();
  const given = expect(Array.fromAsync(passing.answers)).rejects.toMatchObject({ code: Code.Unavailable });
  await vi.advanceTimersByTimeAsync(30_000);
  await given;
  expect(passing.asked.length).toBeGreaterThan(5);
  const refused = createWatch(() => afterwards(0, new ConnectError("no space s", Code.NotFound)));
  const denied = expect(Array.fromAsync(refused.answers)).rejects.toMatchObject({ code: Code.NotFound });
  await vi.advanceTimersByTimeAsync(1);
  await denied;
  expect(refused.asked).toEqual([1]);
});
