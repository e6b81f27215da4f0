import { expect, test } from "vitest";
import { systemClock } from "#runtime/time/clock.ts";
import { createMemoryRunLog } from "../testing/fakes/memory-log.ts";
import { claimRun } from "./claim.ts";
import { openJournal } from "./journal.ts";

test("LOOP-13 a run is claimed as it was seen: what came meanwhile is looked at first", async () => {
  const log = createMemoryRunLog();
  const [seen, other] = [await openJournal(log, "r", systemClock), await openJournal(log, "r", systemClock)];
  await other.append(() => ({ case: "accepted", value: { sessionId: "s" } }));
  await seen.refresh();
  await other.append(() => ({ case: "cancelRequested", value: {} }));
  expect(await claimRun(seen, "here")).toBeUndefined();
  expect((await claimRun(seen, "here"))?.state.cancel).toBeDefined();
});
