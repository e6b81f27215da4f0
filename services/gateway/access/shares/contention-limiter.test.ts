import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ContentionLimiter } from "./contention-limiter.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Asks so many times at once; what is given tells whose turn it is by now. */
function asking(limiter: ContentionLimiter, principal: string, count: number) {
  const running: (() => void)[] = [];
  for (let n = 0; n < count; n++) void limiter.acquire(principal).then((release) => running.push(release));
  return running;
}

const settled = () => vi.advanceTimersByTimeAsync(0);

test("SEC-5 one principal that asks alone never waits", async () => {
  const mallorys = asking(new ContentionLimiter(), "mallory", 100);
  await settled();
  expect(mallorys).toHaveLength(100);
});

test("SEC-5 where two ask, the one with many requests waits for itself, and the other does not", async () => {
  const limiter = new ContentionLimiter();
  const alices = asking(limiter, "alice", 1);
  const mallorys = asking(limiter, "mallory", 100);
  await settled();
  expect(mallorys).toHaveLength(4);
  mallorys[0]!();
  mallorys[0]!(); // once is enough
  await settled();
  expect(mallorys).toHaveLength(5);
  const alicesNext = asking(limiter, "alice", 1);
  await settled();
  expect([alices.length, alicesNext.length]).toEqual([1, 1]);
});

test("SEC-5 a request that takes long keeps nobody waiting", async () => {
  const limiter = new ContentionLimiter();
  asking(limiter, "alice", 1);
  const mallorys = asking(limiter, "mallory", 12);
  await vi.advanceTimersByTimeAsync(10);
  expect(mallorys).toHaveLength(8);
  await vi.advanceTimersByTimeAsync(10);
  expect(mallorys).toHaveLength(12);
});

test("SEC-5 a request that takes long because this process is busy keeps its seat, for a while", async () => {
  const limiter = new ContentionLimiter();
  const clock = performance.now.bind(performance);
  let busyMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => clock() + busyMs);
  asking(limiter, "alice", 1);
  const mallorys = asking(limiter, "mallory", 12);
  for (let looks = 0; looks < 2; looks += 1) {
    busyMs += 50;
    await vi.advanceTimersByTimeAsync(10);
    expect(mallorys).toHaveLength(4);
  }
  busyMs += 50;
  await vi.advanceTimersByTimeAsync(10);
  expect(mallorys).toHaveLength(8);
  await vi.advanceTimersByTimeAsync(10);
  expect(mallorys).toHaveLength(12);
});

test("SEC-5 a principal that has not asked for a second is no reason to wait", async () => {
  const limiter = new ContentionLimiter();
  asking(limiter, "alice", 1);
  const mallorys = asking(limiter, "mallory", 5);
  await vi.advanceTimersByTimeAsync(1_000);
  const later = asking(limiter, "mallory", 100);
  await settled();
  expect(mallorys).toHaveLength(5);
  expect(later).toHaveLength(100);
});
