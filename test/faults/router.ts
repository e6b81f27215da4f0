import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openTreeCopy } from "./processes/tree.ts";
import type { RouterHistory, Violation } from "./router/check/history.ts";
import { figuresFrom, isBroken } from "./router/check/report.ts";
import { runRouterFaults as run } from "./router/run.ts";
import { withouts } from "./router/without.ts";

const parts = Object.entries(withouts).map(([name, { meaning }]) => `  ${name.padEnd(24)} ${meaning}`);

const USAGE = `usage: npm run faults -- router [options]

Ten watchers take calls, ten submitters on connections of their own race with results, and three routers are killed and frozen
at random meanwhile. Then each call is judged by what its caller, its watchers, its submitters, its record and the inbox say.

  --seed N          who is struck, what is called, who submits (1)
  --minutes M       how long at least (1; with --without 0.3)
  --calls N         how many at least (3000; with --without 600)
  --kills N         how many at least (20; with --without none)
  --without PART    takes a part away in a copy of the tree, and wants a violation:
  --json            one line of JSON for each figure
  --help

parts:
${parts.join("\n")}

It goes on until it has its calls and its kills, for up to five times the minutes, or five. Exit code 0: so it has, 99 % of the calls have
results, and no promise was broken; with --without: one was.`;

const number = { type: "string" } as const;
const optionTypes = {
  seed: number,
  minutes: number,
  calls: number,
  kills: number,
  without: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

const whole = { seed: 1, minutes: 1, calls: 3_000, kills: 20 };
/** Enough to find what is broken at every call. */
const short = { ...whole, minutes: 0.3, calls: 600, kills: 0 };

const told = 20;

/** Gives the exit code. */
export async function runRouterFaults(args: string[]): Promise<number> {
  const parsed = parse(args);
  if (typeof parsed === "string") {
    console.error(`${parsed}\n${USAGE}`);
    return 2;
  }
  const { help, isJson, without, ...options } = parsed;
  if (help) {
    console.log(USAGE);
    return 0;
  }
  await using tree = await openTreeCopy({ edits: without?.edits });
  const onProgress = (line: string) => console.error(line);
  const result = await run({ ...options, tree: tree.directory, onProgress });
  const figures = figuresFrom(result, options);
  if (isJson) for (const figure of figures) console.log(JSON.stringify({ fault: "router", ...figure }));
  else console.table(figures);
  await tellViolations(result.violations, result.history, options.seed);
  if (without === undefined) return figures.some(isBroken) ? 1 : 0;
  const isFound = result.violations.length > 0;
  console.error(isFound ? "the checker found it" : "the checker found nothing");
  return isFound ? 0 : 1;
}

function parse(args: string[]) {
  try {
    const { values } = parseArgs({ args, options: optionTypes });
    const { help, json: isJson } = values;
    const without = values.without === undefined ? undefined : withouts[values.without];
    if (values.without !== undefined && without === undefined) return `there is no part ${values.without}`;
    const byDefault = without === undefined ? whole : short;
    const numberOf = (name: keyof typeof whole) => Number(values[name] ?? byDefault[name]);
    const [seed, minutes] = [numberOf("seed"), numberOf("minutes")];
    const [calls, kills] = [numberOf("calls"), numberOf("kills")];
    if (![seed, minutes, calls, kills].every((value) => value >= 0)) {
      return "--seed, --minutes, --calls and --kills are numbers";
    }
    return { seed, minutes, calls, kills, without, isJson, help };
  } catch (error) {
    return messageFromUnknown(error);
  }
}

/** The first ones, and a file with all that is known of their calls. */
async function tellViolations(violations: readonly Violation[], history: RouterHistory, seed: number): Promise<void> {
  if (violations.length === 0) return;
  for (const { rule, callId, what } of violations.slice(0, told))
    console.error(`VIOLATION ${rule}: ${callId}: ${what}`);
  const broken = new Set(violations.map(({ callId }) => callId));
  const path = join(tmpdir(), `toolbus-faults-router-seed-${seed}.json`);
  const calls = history.calls.filter(({ callId }) => broken.has(callId));
  await writeFile(path, JSON.stringify({ violations, ...history, calls }, null, 2));
  console.error(`${violations.length} violations; what is known of their calls stands in ${path}`);
}
