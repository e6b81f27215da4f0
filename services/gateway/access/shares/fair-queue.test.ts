import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FairQueue } from "./fair-queue.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Asks so many times at once; what is given tells who has a seat by now. */
function asking(queue: FairQueue, principal: string, count: number) {
  const seated: (() => void)[] = [];
  for (let n = 0; n < count; n++) void queue.seat(principal).then((leave) => seated.push(leave));
  return seated;
}

const settled = () => vi.advanceTimersByTimeAsync(0);

test("SEC-5 one principal that asks alone never waits", async () => {
  const mallorys = asking(new FairQueue(), "mallory", 100);
  await settled();
  expect(mallorys).toHaveLength(100);
});

test("SEC-5 where two ask, the one with many requests waits for itself, and the other does not", async () => {
  const queue = new FairQueue();
  const alices = asking(queue, "alice", 1);
  const mallorys = asking(queue, "mallory", 100);
  await settled();
  expect(mallorys).toHaveLength(4);
  mallorys[0]!();
  mallorys[0]!(); // once is enough
  await settled();
  expect(mallorys).toHaveLength(5);
  const alicesNext = asking(queue, "alice", 1);
  await settled();
  expect([alices.length, alicesNext.length]).toEqual([1, 1]);
});

test("SEC-5 a request that takes long keeps nobody waiting", async () => {
  const queue = new FairQueue();
  asking(queue, "alice", 1);
  const mallorys = asking(queue, "mallory", 12);
  await vi.advanceTimersByTimeAsync(10);
  expect(mallorys).toHaveLength(8);
  await vi.advanceTimersByTimeAsync(10);
  expect(mallorys).toHaveLength(12);
});

test("SEC-5 a request that takes long because this process is busy keeps its seat, for a while", async () => {
  const queue = new FairQueue();
  const clock = performance.now.bind(performance);
  let busyMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => clock() + busyMs);
  asking(queue, "alice", 1);
  const mallorys = asking(queue, "mallory", 12);
  for (let looks = 0; looks < 8; looks += 1) {
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
  const queue = new FairQueue();
  asking(queue, "alice", 1);
  const mallorys = asking(queue, "mallory", 5);
  await vi.advanceTimersByTimeAsync(1_000);
  const later = asking(queue, "mallory", 100);
  await settled();
  expect(mallorys).toHaveLength(5);
  expect(later).toHaveLength(100);
});
