import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openTreeCopy } from "../processes/tree.ts";
import { NOTICED_AFTER_MS } from "./check.ts";
import type { ClientCall, Strike } from "./history.ts";
import { runSilence, type SilenceResult } from "./run.ts";

const HELP = `usage: npm run faults -- silence [options]

Two tool-routers and two worker-pools, one of which at a time is frozen or cut off from the broker in silence. Clients call pure and
at-most-once tools through a gateway, each call once, and what they see is judged.

  --seed N         who is struck, how, and for how long (1)
  --strikes N      how often (10)
  --least N        how long a strike lasts, in seconds (5)
  --most N         (20)
  --broker KIND    quick: it drops who is silent after 4 s; slow: it does not notice (slow)
  --revision REV   of the services, in place of the files as they are
  --json           one line of JSON for each figure
  --help           this text`;

const number = (byDefault: number) => ({ type: "string" as const, default: String(byDefault) });
const options = {
  seed: number(1),
  strikes: number(10),
  least: number(5),
  most: number(20),
  broker: { type: "string", default: "slow" },
  revision: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

const TOLD = 20;

/** Gives the exit code. */
export async function runSilenceFaults(args: string[]): Promise<number> {
  const values = parse(args);
  if (typeof values === "string") {
    console.error(`${values}\n${HELP}`);
    return 2;
  }
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  await using tree = await openTreeCopy({ revision: values.revision });
  const result = await runSilence({
    tree: tree.directory,
    seed: Number(values.seed),
    strikes: Number(values.strikes),
    leastMs: Number(values.least) * 1_000,
    mostMs: Number(values.most) * 1_000,
    slowBroker: values.broker === "slow",
    onProgress: (line) => console.error(line),
  });
  const figures = figuresFrom(result);
  if (values.json) for (const figure of figures) console.log(JSON.stringify({ fault: "silence", ...figure }));
  else console.table(figures);
  await tellViolations(result, values.seed);
  return figures.some(({ value, limit }) => limit !== undefined && value > limit) ? 1 : 0;
}

function parse(args: string[]) {
  try {
    const { values } = parseArgs({ args, options });
    const { seed, strikes, least, most, broker } = values;
    if (![seed, strikes, least, most].every((value) => Number(value) >= 0))
      return "--seed, --strikes, --least and --most are numbers";
    return broker === "slow" || broker === "quick" ? values : "--broker is slow or quick";
  } catch (error) {
    return messageFromUnknown(error);
  }
}

interface Figure {
  readonly metric: string;
  readonly value: number;
  readonly unit: string;
  /** What the value must not exceed; absent where it is only told. */
  readonly limit?: number;
}

function figuresFrom({ history, violations, unaskedEnds }: SilenceResult): Figure[] {
  const { calls, strikes } = history;
  const faults = calls.filter(({ told }) => told.kind === "fault");
  const told = (metric: string, value: number, unit = "") => ({ metric, value, unit });
  const slowest = Math.max(0, ...calls.map(({ fromMs, toMs }) => toMs - fromMs));
  return [
    told("strikes", strikes.length),
    told("calls", calls.length),
    told("calls_without_result", faults.length),
    told("calls_made_when_noticed", calls.filter((call) => strikes.some((strike) => isNoticed(call, strike))).length),
    told("slowest_call", Math.round(slowest), "ms"),
    { ...told("services_died", unaskedEnds.length), limit: 0 },
    { ...told("violations", violations.length), limit: 0 },
  ];
}

function isNoticed({ fromMs }: ClientCall, strike: Strike): boolean {
  return fromMs >= strike.fromMs + NOTICED_AFTER_MS && fromMs <= strike.toMs;
}

async function tellViolations({ violations, history }: SilenceResult, seed: string): Promise<void> {
  if (violations.length === 0) return;
  for (const { rule, key, what } of violations.slice(0, TOLD)) console.error(`VIOLATION ${rule}: ${key}: ${what}`);
  const path = join(tmpdir(), `toolbus-faults-silence-seed-${seed}.json`);
  await writeFile(path, JSON.stringify({ violations, ...history }, null, 2));
  console.error(`${violations.length} violations; all calls stand in ${path}`);
}
