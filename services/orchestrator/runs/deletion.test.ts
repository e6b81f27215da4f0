import { expect, test } from "vitest";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal } from "../log/journal.ts";
import { createMemoryRunLog } from "../testing/fakes/memory-log.ts";
import { deleteRun } from "./deletion.ts";

test("LOOP-18 the refusal to delete a run that goes on says when to try again, once it is canceled", async () => {
  const log = createMemoryRunLog();
  const accepted = { sessionId: "s", agent: "a", principal: "alice" };
  await createJournal(log, "r1", systemClock).append(() => ({ case: "accepted", value: accepted }));
  const parts = { retention: { removeLog: async () => {} }, tellDeleted: () => {}, audit: () => {} };
  const options = { log, clock: systemClock, ...parts };
  await expect(deleteRun(options, "r1", { principal: "alice", isOperator: false })).rejects.toMatchObject({
    reason: "RUN_NOT_ENDED",
    metadata: { run_id: "r1", retry_in_ms: "1000" },
  });
});
