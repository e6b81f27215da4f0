import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { acceptRun } from "../../runs/create/acceptance.ts";
import type { SessionQueues } from "../../sessions/queue.ts";
import { createStreamQueues } from "./stream-queues.ts";
import { createStreamRunKeys, createStreamRunLog } from "./stream-run-log.ts";

const accepted = (idempotencyKey: string) => create(RunAcceptedSchema, { sessionId: "s", agent: "a", idempotencyKey });

test("LOOP-13 a creator that died is made up for at the same cost however many runs its session had before", async () => {
  await using bus = await openTestBus();
  const [log, keys, stored] = [createStreamRunLog(bus), createStreamRunKeys(bus), createStreamQueues(bus)];
  let entriesRead = 0;
  const before: SessionQueues["before"] = (entry) => {
    entriesRead += 1;
    return stored.before(entry);
  };
  const options = { log, keys, queues: { ...stored, before }, wakes: { send: async () => {} }, clock: systemClock };
  for (const key of ["one", "two", "three", "four"]) await acceptRun(options, accepted(key));
  const died = { ...options, wakes: { send: () => Promise.reject(new Error("killed")) } };
  await expect(acceptRun(died, accepted("k"))).rejects.toThrow("killed");
  await acceptRun(options, accepted("five"));
  entriesRead = 0;
  const { runId } = await acceptRun(options, accepted("k"));
  expect((await stored.last("s"))?.queued.runId).toBe(runId);
  expect(entriesRead).toBeLessThanOrEqual(2);
});
