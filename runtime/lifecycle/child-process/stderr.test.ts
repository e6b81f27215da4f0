import { once } from "node:events";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { drainStderr } from "./stderr.ts";

test("SEC-5 a child that writes lines without end leaves half of the time to others", async () => {
  const stderr = Readable.from(Array.from({ length: 20 }, () => Buffer.from("x\n")));
  let [lines, turns] = [0, 0];
  const timer = setInterval(() => (turns += 1), 1);
  const tail = drainStderr(stderr, {
    onLine() {
      lines += 1;
      const until = performance.now() + 5;
      while (performance.now() < until);
    },
  });
  await once(stderr, "close");
  clearInterval(timer);
  expect([lines, tail()]).toEqual([20, Array.from({ length: 20 }, () => "x").join("\n")]);
  expect(turns).toBeGreaterThanOrEqual(19);
});
