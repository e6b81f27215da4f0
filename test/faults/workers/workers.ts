import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { faultCommand } from "../command/command.ts";
import { number } from "../command/options.ts";
import { reportFigures } from "../command/report.ts";
import { openTreeCopy } from "../processes/tree.ts";
import { runCycles } from "./cycles/cycles.ts";
import { figuresOfCycles, figuresOfFuzz, figuresOfStorm, type Report } from "./figures.ts";
import { runFuzz } from "./fuzz/fuzz.ts";
import { runStorm } from "./storm/storm.ts";
import { openPoolWorld, type PoolWorld } from "./world.ts";

const onProgress = (line: string) => console.error(line);

export const runWorkersFaults = faultCommand({
  name: "workers",
  about: `Clients call the functions of one Python file, many of them hostile: they print, fork, raise, die, answer wrongly. Each call has its own
result or an error that is true, and is shown nothing of another call. Workers that leave children, and their pools, are started and
ended in every way: no process and no file descriptor may be left. Metadata of tool files, right and wrong, are read by uv and
by the worker-pool: what the pool offers uv must take, with the same packages. A part of which 0 are wanted is left out.`,
  options: {
    seed: number("of all that is random", 1),
    clients: number("who call at the same time", 16),
    calls: number("of each client", 2_000),
    cycles: number("starts and ends of a worker or a pool", 200),
    fuzz: number("files whose metadata are read by both", 1_000),
  },
  more: "With TOOLBUS_CONFINEMENT=off, workers have no namespace of their own that would end with all that is in it.",
  async run({ seed, clients, calls, cycles, fuzz, json }) {
    const reports: Report[] = [];
    if (clients * calls > 0) {
      const storm = (world: PoolWorld) => runStorm(world, { seed, clients, calls, onProgress });
      reports.push(await inWorld("storm/tool.py", async (world) => figuresOfStorm(await storm(world), world)));
    }
    if (cycles > 0) {
      const ends = (world: PoolWorld) => runCycles(world, { seed, cycles, onProgress });
      reports.push(await inWorld("cycles/tool.py", async (world) => figuresOfCycles(await ends(world), world)));
    }
    if (fuzz > 0) reports.push(figuresOfFuzz(await runFuzz({ uv: await findUv(), seed, files: fuzz, onProgress })));
    const figures = reports.flatMap((report) => report.figures);
    const isKept = reportFigures("workers", figures, { json });
    for (const example of reports.flatMap(({ examples }) => examples)) console.error(example);
    console.error(figures.map(({ metric, value }) => `${metric} ${value}`).join(", "));
    return isKept;
  },
});

async function inWorld(tool: string, run: (world: PoolWorld) => Promise<Report>): Promise<Report> {
  await using tree = await openTreeCopy();
  const options = { tree: tree.directory, uv: await findUv(), tool: new URL(tool, import.meta.url) };
  await using world = await openPoolWorld(options);
  return await run(world);
}
