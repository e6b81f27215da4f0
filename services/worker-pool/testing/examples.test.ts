import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestWorkers, type TestWorkers } from "./workers.ts";

let workers: TestWorkers;

const example = (name: string) => readFile(new URL(`../../../examples/workers/${name}`, import.meta.url), "utf8");

beforeAll(async () => {
  const files = { "qr.py": await example("qr.py"), "stats.py": await example("stats.py") };
  // Their dependencies come from PyPI: the machine's own cache keeps them.
  workers = await openTestWorkers(files, { UV_CACHE_DIR: process.env.UV_CACHE_DIR ?? "" });
});
afterAll(() => workers[Symbol.asyncDispose]());

test("WORK-1 the example qr has its dependency installed and makes a code", async () => {
  const text = "https://example.org/a?b=c";
  const called = await workers.call("qr.encode", { text }, { config: { config: { scale: 2 } } });
  expect(called).toMatchObject({ isError: false, result: { text, version: 2 }, logs: ["encoded"] });
  expect(called.result).toHaveProperty("svg", expect.stringMatching(/^<svg width="66"/));
  const drawn = await workers.call("qr.encode", { text, format: "text" });
  expect(drawn.result).toHaveProperty("drawing", expect.stringContaining("▄"));
}, 120_000);

test("WORK-2 the example stats describes numbers, and smooths them with progress", async () => {
  const called = await workers.call("stats.describe", { values: [1, 2, 6], label: "ms" });
  expect(called.result).toMatchObject({ count: 3, mean: 3, median: 2, table: expect.stringContaining("| mean") });
  const smoothed = await workers.call("stats.moving_average", { values: [1, 2, 3, 4], window: 2 });
  expect(smoothed).toMatchObject({ result: [1.5, 2.5, 3.5], progress: ["1/3", "2/3", "3/3"] });
  expect((await workers.call("stats.describe", { values: [] })).result).toEqual({
    error: "ValueError: there is nothing to describe: values is empty",
  });
}, 120_000);
