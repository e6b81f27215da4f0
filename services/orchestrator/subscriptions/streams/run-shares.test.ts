import { expect, test } from "vitest";
import { openQuota } from "#runtime/bus/quota/quota.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { textContent } from "#runtime/content/text.ts";
import type { Failure } from "#runtime/failure/failure.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { createJournal } from "../../log/journal.ts";
import { createRunQuota } from "../../runs/run-quota.ts";
import { runShares } from "./run-shares.ts";
import { createStreamRetention } from "./stream-retention.ts";
import { createStreamRunLog } from "./stream-run-log.ts";

test("SEC-6 a principal whose runs take the most is refused the next while room is short, and others are not", async () => {
  await using bus = await openTestBus();
  await shrinkStore(bus, "TOOLBUS_RUNS", 2 ** 22);
  const log = createStreamRunLog(bus);
  const onFault = () => {};
  await using stored = openQuota(bus, { ...runShares(bus, log), onFault, everyMs: 20 });
  const runs = createRunQuota(log, 1_000, stored);
  const input = [{ item: { case: "message", value: { content: textContent("x".repeat(400_000)) } } } as const];
  const accept = async (principal: string, runId: string) => {
    using _ = await runs.requireRoom(principal);
    const value = { sessionId: "s", agent: "a", principal, input };
    await createJournal(log, runId, systemClock).append(() => ({ case: "accepted", value }));
  };
  await accept("alice", "hers");
  for (let n = 0; n < 7; n++) await accept("mallory", `his${n}`);
  const refusal = () =>
    runs.requireRoom("mallory").then(
      () => undefined,
      (error: Failure) => error,
    );
  const refused = await until(refusal); // a measurement that takes long rests for ten times as long
  expect(refused).toMatchObject({ code: "resource_exhausted", reason: "SHARE_EXCEEDED" });
  expect(refused.message).toMatch(
    /^"mallory" has its share of TOOLBUS_RUNS: \d+ bytes of runs; wait until old sessions go/,
  );
  await accept("alice", "hers-too");
  for (let n = 0; n < 4; n++) await createStreamRetention(bus).removeLog(`his${n}`);
  await until(async () => (await refusal()) === undefined);
});
