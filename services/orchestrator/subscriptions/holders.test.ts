import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { createHolders, openHolderAnswers } from "./holders.ts";

test("LOOP-10 many who ask for a run's text at once are told together", async () => {
  await using bus = await openTestBus();
  const told: string[] = [];
  const answers = { answer: () => "free" as const, publishSnapshot: (runId: string) => void told.push(runId) };
  await using _answering = await openHolderAnswers(bus, "one", answers);
  const holders = createHolders(bus);
  for (let n = 0; n < 100; n += 1) holders.requestSnapshot("one", n % 2 === 0 ? "even" : "odd");
  await until(() => told.length >= 2);
  expect(await holders.ask("one", "session", 1), "asked behind them").toBe("free");
  expect(new Set(told)).toEqual(new Set(["even", "odd"]));
  expect(told.length, "on a busy machine some come later than others").toBeLessThan(20);
});
