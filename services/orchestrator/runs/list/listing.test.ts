import { create } from "@bufbuild/protobuf";
import { expect, test, vi } from "vitest";
import { QueuedRunSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { ListRunsRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal } from "../../log/journal.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { listRuns } from "./listing.ts";

test("SEC-5 a page of runs reads no log of others', and finds what stands behind thousands of them", async () => {
  const log = createMemoryRunLog();
  const accepted = { sessionId: "s", agent: "a", principal: "ada" };
  await createJournal(log, "hers", systemClock).append(() => ({ case: "accepted", value: accepted }));
  const entry = (runId: string, principal: string, position: number) => ({
    queued: create(QueuedRunSchema, { runId, principal }),
    position,
  });
  const others = Array.from({ length: 5_000 }, (_, n) => entry(`r${n}`, "bob", 6_000 - n));
  const read = vi.spyOn(log, "read");
  const pages = {
    latest: async (before?: number) => (before === undefined ? [...others, entry("hers", "ada", 1)] : []),
    beforePosition: async () => undefined,
  };
  const options = { log, queues: createMemoryQueues(), pages };
  const { runs } = await listRuns(options, create(ListRunsRequestSchema, {}), callerNamed("ada"));
  expect(runs.map(({ id }) => id)).toEqual(["hers"]);
  expect(new Set(read.mock.calls.map(([runId]) => runId))).toEqual(new Set(["hers"]));
});
