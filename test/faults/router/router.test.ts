// The short form of `npm run faults -- router`: real processes, a few kills and one freeze.

import { expect, it } from "vitest";
import { projectRoot } from "../../architecture/source-files.ts";
import { type Figure, isBroken } from "../command/report.ts";
import { figuresFrom } from "./check/report.ts";
import { runRouterFaults } from "./run.ts";

const quick = { seed: 5, minutes: 0.2, calls: 200, kills: 3 };

/** One that is so busy that watchers come too late loses some calls of few, with their reason. */
const onBusyMachine = ({ metric }: Figure) => (metric === "calls_with_result" ? { least: 50 } : {});

it("TOOL-6 TOOL-7 TOOL-8 TOOL-9 LOOP-14 routers are killed and frozen: each call has one result, or an error that says why", {
  timeout: 600_000,
}, async () => {
  const result = await runRouterFaults({ ...quick, tree: projectRoot, onProgress: () => {} });
  expect(result.violations).toEqual([]);
  expect(figuresFrom(result, quick).filter((figure) => isBroken({ ...figure, ...onBusyMachine(figure) }))).toEqual([]);
});
