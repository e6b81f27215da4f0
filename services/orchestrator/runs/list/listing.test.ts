import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test, vi } from "vitest";
import { QueuedRunSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { ListRunsRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal } from "../../log/journal.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { listRuns } from "./listing.ts";

test("list-4 others' runs of before the time that is asked for end the list, too", async () => {
  const hourMs = 3_600_000;
  let pagesRead = 0;
  const pages = {
    latest: async (before = 100_000) => {
      pagesRead += 1;
      return Array.from({ length: 16 }, (_, n) => ({
        queued: create(QueuedRunSchema, { runId: `r${before - n}`, principal: "bob" }),
        position: before - n - 1,
        writtenAtMs: Date.now() - pagesRead * hourMs,
      }));
    },
    beforePosition: async () => undefined,
  };
  const request = create(ListRunsRequestSchema, { startTime: timestampFromMs(Date.now() - 2 * hourMs) });
  const options = { log: createMemoryRunLog(), queues: createMemoryQueues(), pages };
  expect(await listRuns(options, request, callerNamed("ada"))).toEqual({ runs: [], nextPageToken: "" });
  expect(pagesRead).toBe(3);
});

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
