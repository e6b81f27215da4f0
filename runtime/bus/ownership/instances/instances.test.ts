import { expect, test } from "vitest";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { openInstances } from "./instances.ts";

test("the first instance of all finds none, which is no fault", async () => {
  await using bus = await openTestBus();
  const faults: unknown[] = [];
  await using instances = await openInstances(bus, "nobody", (error) => void faults.push(error));
  expect(await instances.list(new AbortController().signal)).toEqual([]);
  expect(faults).toEqual([]);
});
