import { expect, test } from "vitest";
import { createTimeLimit, OutOfTime } from "../time-limit.ts";

/** Takes time, and none of a processor, as work does for which the machine has none. */
const starve = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

function burn(): never {
  for (;;);
}

test("SEC-5 work that takes too long is ended", () => {
  expect(() => createTimeLimit(100).run(burn)).toThrow(OutOfTime);
});

test("SEC-5 work that the machine had no time for is not slow: it is begun again, from a state that is known", () => {
  const told: string[] = [];
  const work = () => {
    told.push("begun");
    if (told.length === 1) starve(300);
    return "done";
  };
  expect(createTimeLimit(50).run(work, () => told.push("forgotten"))).toBe("done");
  expect(told).toEqual(["begun", "forgotten", "begun"]);
});

test("SEC-5 a machine that has no time for long ends the work, too", () => {
  let runs = 0;
  const work = () => {
    runs += 1;
    starve(100);
  };
  expect(() => createTimeLimit(20).run(work, () => {})).toThrow(OutOfTime);
  expect(runs).toBe(2);
  expect(() => createTimeLimit(20).run(work), "what is not to be begun again").toThrow(OutOfTime);
  expect(runs).toBe(3);
});
