import { parseArgs } from "node:util";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { figuresOfFuzz } from "./figures.ts";
import { runFuzz } from "./fuzz/fuzz.ts";

const HELP = `usage: npm run faults -- workers [options]

Metadata of tool files, right and wrong, are read by uv and by the worker-pool: what the pool offers uv must take, with the same packages.

  --seed N    of all that is random (1)
  --fuzz N    files whose metadata are read by both (1000)
  --json      one line of JSON for each figure
  --help      this text`;

const number = (byDefault: number) => ({ type: "string" as const, default: String(byDefault) });
const options = {
  seed: number(1),
  fuzz: number(1_000),
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

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
  const onProgress = (line: string) => void process.stderr.write(`${line}\n`);
  const { figures, examples } = figuresOfFuzz(
    await runFuzz({ uv: await findUv(), seed: Number(values.seed), files: Number(values.fuzz), onProgress }),
  );
  if (values.json) for (const figure of figures) console.log(JSON.stringify({ fault: "workers", ...figure }));
  else console.table(figures);
  for (const example of examples) process.stderr.write(`${example}\n`);
  console.error(figures.map(({ metric, value }) => `${metric} ${value}`).join(", "));
  return figures.some(({ value, limit }) => limit !== undefined && value > limit) ? 1 : 0;
}

/** The options, or what is wrong with them. */
function parse(args: string[]) {
  try {
    const { values } = parseArgs({ args, options });
    const wrong = (["seed", "fuzz"] as const).find((name) => !(Number(values[name]) >= 0));
    return wrong === undefined ? values : `--${wrong} is a number`;
  } catch (error) {
    return messageFromUnknown(error);
  }
}
