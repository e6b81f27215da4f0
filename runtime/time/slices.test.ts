import { expect, test } from "vitest";
import { openSlices } from "./slices.ts";

function busy(ms: number): void {
  for (const endsAt = performance.now() + ms; performance.now() < endsAt; );
}

test("SEC-5 however much long work there is, what else has to be done waits for one slice of it", async () => {
  const work = async () => {
    const nextStep = openSlices();
    for (let step = 0; step < 20; step += 1) {
      await nextStep();
      busy(2);
    }
  };
  const lateMs: number[] = [];
  let at = performance.now();
  const other = setInterval(() => {
    lateMs.push(performance.now() - at);
    at = performance.now();
  }, 1);
  await Promise.all(Array.from({ length: 10 }, work));
  clearInterval(other);
  const median = lateMs.toSorted((a, b) => a - b)[Math.floor(lateMs.length / 2)];
  expect(lateMs.length).toBeGreaterThan(30); // 400 ms of work, in slices of 6
  expect(median).toBeLessThan(20);
});
