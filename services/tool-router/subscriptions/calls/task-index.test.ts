import { expect, test } from "vitest";
import { evict } from "#runtime/bus/quota/eviction.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { createTaskIndex, TASK_EVICTION } from "./task-index.ts";

const { signal } = new AbortController();

test("SEC-6 a principal that fills the index of tasks loses its own oldest entries, and nobody else's", async () => {
  await using bus = await openTestBus();
  const faults: string[] = [];
  const tasks = createTaskIndex(bus, (fault) => faults.push(fault));
  const listed = async (principal: string) =>
    (await tasks.read(principal, { after: 0, limit: 10_000, signal })).map(({ callId }) => callId);
  await tasks.add({ principal: "alice", callId: "hers" });
  await shrinkStore(bus, TASK_EVICTION.stream, 32 * 1_024);
  for (let n = 0; faults.length === 0; n += 1) await tasks.add({ principal: "mallory", callId: `his-${n}` });
  expect(faults[0]).toMatch(/^task his-\d+ is missing in the list of its principal's tasks/);

  const before = await listed("mallory");
  expect(await evict(bus, TASK_EVICTION, signal)).toBeGreaterThan(10);
  expect(await listed("alice")).toEqual(["hers"]);
  const left = await listed("mallory");
  expect(left, "the oldest are gone").toEqual(before.slice(-left.length));
  await tasks.add({ principal: "alice", callId: "hers-too" });
  expect(await listed("alice")).toEqual(["hers", "hers-too"]);
  expect(faults).toHaveLength(1);
});
