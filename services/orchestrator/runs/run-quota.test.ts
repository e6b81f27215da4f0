import { expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal, type EventBody } from "../log/journal.ts";
import { createMemoryRunLog } from "../testing/fakes/memory-log.ts";
import { createRunQuota } from "./run-quota.ts";

test("SEC-6 who has its share of runs in flight is refused the next, until one has ended; others are not", async () => {
  const log = createMemoryRunLog();
  let asked = 0;
  const last = async (runId: string) => {
    asked += 1;
    return log.last(runId);
  };
  const runs = createRunQuota({ last }, 40);
  const append = (runId: string, body: EventBody) => createJournal(log, runId, systemClock).append(() => body);
  const accept = async (principal: string, runId: string) => {
    using _ = await runs.requireRoom(principal);
    await append(runId, { case: "accepted", value: { sessionId: "s", agent: "a", principal } });
    runs.add(principal, runId);
  };
  const refused = { code: "resource_exhausted", reason: "SHARE_EXCEEDED" };
  for (let n = 0; n < 40; n++) await accept("mallory", `run${n}`);
  expect(asked, "below the share nothing is asked").toBe(0);
  await expect(accept("mallory", "more")).rejects.toMatchObject({
    ...refused,
    message: '"mallory" has its share of this orchestrator: 40 runs in flight; try again after 5000 ms',
    metadata: { share: "runs in flight", limit: "40", retry_in_ms: "5000" },
  });
  await accept("alice", "hers");
  await append("run5", { case: "ended", value: { state: RunState.COMPLETED } });
  log.purge("run39");
  await expect(accept("mallory", "more"), "it asks for others first").resolves.toBeUndefined();
  await accept("mallory", "yet more");
  for (let n = 0; n < 3; n++) await expect(accept("mallory", "too many")).rejects.toMatchObject(refused);
});

test("SEC-6 the runs that one creates at once are no more than its share", async () => {
  const runs = createRunQuota(createMemoryRunLog(), 2);
  const creations = await Promise.allSettled(Array.from({ length: 10 }, () => runs.requireRoom("mallory")));
  const places = creations.flatMap((creation) => (creation.status === "fulfilled" ? [creation.value] : []));
  expect(places).toHaveLength(2);
  await expect(runs.requireRoom("mallory")).rejects.toMatchObject({ reason: "SHARE_EXCEEDED" });
  for (const place of places) place[Symbol.dispose]();
  using _ = await runs.requireRoom("mallory");
});

test("SEC-6 a run that is accepted takes the place of its own creation, and no other's", async () => {
  const log = createMemoryRunLog();
  const runs = createRunQuota(log, 2);
  using _slow = await runs.requireRoom("mallory");
  {
    using place = await runs.requireRoom("mallory");
    const accepted: EventBody = { case: "accepted", value: { sessionId: "s", agent: "a", principal: "mallory" } };
    await createJournal(log, "run1", systemClock).append(() => accepted);
    runs.add("mallory", "run1", place);
  }
  await expect(runs.requireRoom("mallory")).rejects.toMatchObject({ reason: "SHARE_EXCEEDED" });
});
