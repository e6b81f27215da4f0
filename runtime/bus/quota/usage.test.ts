import { expect, test } from "vitest";
import { openTestBus } from "../../../test/harness/bus.ts";
import { appendMany } from "../testing/texts.ts";
import { sizesOf } from "./usage.ts";

const STREAM = "TOOLBUS_RUNS";
const sequences = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test("SEC-6 a measurement ends with what stood when it began, and where all that is left of it is removed", async () => {
  await using bus = await openTestBus();
  await appendMany(bus, "toolbus.run.large", 600);
  const whole = await Array.fromAsync(sizesOf(bus, STREAM, AbortSignal.timeout(5_000)), ({ sequence }) => sequence);
  expect(whole).toEqual(sequences(600));
  const seen: number[] = [];
  for await (const { sequence } of sizesOf(bus, STREAM, AbortSignal.timeout(5_000))) {
    if (sequence === 1) await bus.manager.streams.purge(STREAM);
    seen.push(sequence);
  }
  expect(seen).toEqual(sequences(seen.length));
  expect(seen.length).toBeLessThan(600);
});
