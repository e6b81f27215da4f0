import { parseArgs } from "node:util";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openTreeCopy } from "../processes/tree.ts";
import { runCycles } from "./cycles/cycles.ts";
import { figuresOfCycles, figuresOfFuzz, figuresOfStorm, isBroken, type Report } from "./figures.ts";
import { runFuzz } from "./fuzz/fuzz.ts";
import { runStorm } from "./storm/storm.ts";
import { openPoolWorld, type PoolWorld } from "./world.ts";

const HELP = `usage: npm run faults -- workers [options]

Clients call the functions of one Python file, many of them hostile: they print, fork, raise, die, answer wrongly. Each call has its own
result or an error that is true, and is shown nothing of another call. Workers that leave children, and their pools, are started and
ended in every way: no process and no file descriptor may be left. Metadata of tool files, right and wrong, are read by uv and
by the worker-pool: what the pool offers uv must take, with the same packages. A part of which 0 are wanted is left out.

  --seed N     of all that is random (1)
  --clients N  who call at the same time (16)
  --calls N    of each client (2000)
  --cycles N   starts and ends of a worker or a pool (200)
  --fuzz N     files whose metadata are read by both (1000)
  --json       one line of JSON for each figure
  --help       this text

With TOOLBUS_CONFINEMENT=off, workers have no namespace of their own that would end with all that is in it.`;

const number = (byDefault: number) => ({ type: "string" as const, default: String(byDefault) });
const options = {
  seed: number(1),
  clients: number(16),
  calls: number(2_000),
  cycles: number(200),
  fuzz: number(1_000),
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;
const numbers = ["seed", "clients", "calls", "cycles", "fuzz"] as const;

/** Gives the exit code: 1 when something was violated. */
export async function runWorkersFaults(args: string[]): Promise<number> {
  const values = parse(args);
  if (typeof values === "string") {
    console.error(`${values}\n${HELP}`);
    return 2;
  }
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const reports: Report[] = [];
  for (const run of partsOf(values)) reports.push(await run());
  const figures = reports.flatMap((report) => report.figures);
  if (values.json) for (const figure of figures) console.log(JSON.stringify({ fault: "workers", ...figure }));
  else console.table(figures);
  for (const example of reports.flatMap(({ examples }) => examples)) process.stderr.write(`${example}\n`);
  console.error(figures.map(({ metric, value }) => `${metric} ${value}`).join(", "));
  return figures.some(isBroken) ? 1 : 0;
}

function partsOf(values: Record<(typeof numbers)[number], string>): (() => Promise<Report>)[] {
  const [seed, clients, calls, cycles, files] = numbers.map((name) => Number(values[name])) as Numbers;
  const onProgress = (line: string) => void process.stderr.write(`${line}\n`);
  const storm = () =>
    inWorld("storm/tool.py", async (world) =>
      figuresOfStorm(await runStorm(world, { seed, clients, calls, onProgress }), world),
    );
  const ends = () =>
    inWorld("cycles/tool.py", async (world) =>
      figuresOfCycles(await runCycles(world, { seed, cycles, onProgress }), world),
    );
  const fuzz = async () => figuresOfFuzz(await runFuzz({ uv: await findUv(), seed, files, onProgress }));
  return [...(clients * calls > 0 ? [storm] : []), ...(cycles > 0 ? [ends] : []), ...(files > 0 ? [fuzz] : [])];
}

type Numbers = [number, number, number, number, number];

async function inWorld(tool: string, run: (world: PoolWorld) => Promise<Report>): Promise<Report> {
  await using tree = await openTreeCopy();
  const options = { tree: tree.directory, uv: await findUv(), tool: new URL(tool, import.meta.url) };
  await using world = await openPoolWorld(options);
  return await run(world);
}

/** The options, or what is wrong with them. */
function parse(args: string[]) {
  try {
    const { values } = parseArgs({ args, options });
    const wrong = numbers.find((name) => !(Number(values[name]) >= 0));
    return wrong === undefined ? values : `--${wrong} is a number`;
  } catch (error) {
    return messageFromUnknown(error);
  }
}
