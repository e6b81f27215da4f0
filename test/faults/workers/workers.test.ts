// The short form of `npm run faults -- workers`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { projectRoot } from "../../architecture/source-files.ts";
import { isBroken } from "../command/report.ts";
import { runCycles } from "./cycles/cycles.ts";
import { processesOf } from "./cycles/left.ts";
import { figuresOfCycles, figuresOfFuzz, figuresOfStorm } from "./figures.ts";
import { runFuzz } from "./fuzz/fuzz.ts";
import { runStorm } from "./storm/storm.ts";
import { openPoolWorld } from "./world.ts";

const uv = process.env.TOOLBUS_UV!;
const onProgress = () => {};

it("WORK-1 metadata that the pool offers are taken by uv, with the same packages; others are refused with words", async () => {
  const { figures, examples } = figuresOfFuzz(await runFuzz({ uv, seed: 7, files: 50, onProgress }));
  const value = (metric: string) => figures.find((figure) => figure.metric === metric)?.value;
  expect(figures.filter(isBroken), examples.join("\n")).toEqual([]);
  expect(value("files_taken_by_both")).toBeGreaterThan(3);
  expect(value("files_refused_by_both")).toBeGreaterThan(3);
}, 60_000);

it("WORK-5 WORK-8 calls beside hostile ones on one file have their own result, or an error that is true", async () => {
  const tool = new URL("storm/tool.py", import.meta.url);
  await using world = await openPoolWorld({ tree: projectRoot, uv, tool });
  const result = await runStorm(world, { seed: 7, clients: 8, calls: 25, onProgress });
  const { figures, examples } = figuresOfStorm(result, world);
  expect(figures.filter(isBroken), examples.join("\n")).toEqual([]);
  expect(result.calls).toBe(200);
  expect(result.fatal).toBeGreaterThan(4);
  expect(result.endings.get("result")).toBeGreaterThan(50);
}, 120_000);

it("WORK-9 workers and pools that are started and ended in every way leave no process and no file descriptor", async () => {
  const tool = new URL("cycles/tool.py", import.meta.url);
  await using world = await openPoolWorld({ tree: projectRoot, uv, tool });
  const result = await runCycles(world, { seed: 3, cycles: 6, onProgress });
  const { figures, examples } = figuresOfCycles(result, world);
  expect(figures.filter(isBroken), examples.join("\n")).toEqual([]);
  expect(result.processesSeen).toBeGreaterThanOrEqual(6 * 6);

  const left = spawn("sleep", ["60"], { cwd: world.directory, detached: true });
  expect(await processesOf(world.directory)).toContain(left.pid);
  left.kill();
  await once(left, "exit");
}, 120_000);
