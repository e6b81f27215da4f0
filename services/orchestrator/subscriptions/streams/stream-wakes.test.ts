import { expect, test, vi } from "vitest";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { openStreamWakes } from "./stream-wakes.ts";

test("LOOP-13 a wake-up that waits for its event is not old for a process whose clock is ahead of the broker's", async () => {
  await using bus = await openTestBus();
  const wakes = await openStreamWakes(bus, { ackWaitMs: 1_000, heartbeatMs: 300, maxInHand: 10 });
  await wakes.send({ sessionId: "s", runId: "r", eventCount: 1 });
  const now = Date.now();
  vi.spyOn(Date, "now").mockReturnValue(now + 3_600_000);
  const ages: number[] = [];
  for await (const wake of wakes.next(3, AbortSignal.timeout(10_000))) {
    ages.push(wake.ageMs);
    if (ages.length === 3) wake.done();
    else wake.later(1);
    if (ages.length === 3) break;
  }
  vi.restoreAllMocks();
  expect(ages).toEqual([50, 100, 150]);
});
