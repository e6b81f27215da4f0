import { faultCommand, listOf } from "../command/command.ts";
import { named, number } from "../command/options.ts";
import { reportFigures, reportFinding, reportViolations } from "../command/report.ts";
import { openTreeCopy } from "../processes/tree.ts";
import { figuresFrom } from "./check/report.ts";
import { type RouterRunResult, runRouterFaults as run } from "./run.ts";
import { withouts } from "./without.ts";

const meanings = Object.fromEntries(Object.entries(withouts).map(([name, { meaning }]) => [name, meaning]));

const whole = { minutes: 1, calls: 3_000, kills: 20 };
/** Enough to find what is broken at every call. */
const short = { minutes: 0.3, calls: 600, kills: 0 };

export const runRouterFaults = faultCommand({
  name: "router",
  about: `Ten watchers take calls, ten submitters on connections of their own race with results, and three routers are killed and frozen
at random meanwhile. Then each call is judged by what its caller, its watchers, its submitters, its record and the inbox say.`,
  options: {
    seed: number("who is struck, what is called, who submits", 1),
    minutes: number("how long at least (1; with --without 0.3)"),
    calls: number("how many at least (3000; with --without 600)"),
    kills: number("how many at least (20; with --without none)"),
    without: named("PART", "takes a part away in a copy of the tree, and wants a violation", withouts),
  },
  more: `parts:
${listOf(meanings)}

It goes on until it has its calls and its kills, for up to five times the minutes, or five. Exit code 0: so it has, 99 % of the calls have
results, and no promise was broken; with --without: one was.`,
  async run({ seed, without, json, ...given }) {
    const byDefault = without === undefined ? whole : short;
    const { minutes = byDefault.minutes, calls = byDefault.calls, kills = byDefault.kills } = given;
    await using tree = await openTreeCopy({ edits: without?.edits });
    const onProgress = (line: string) => console.error(line);
    const result = await run({ seed, minutes, calls, kills, tree: tree.directory, onProgress });
    const isKept = reportFigures("router", figuresFrom(result, { calls, kills }), { json });
    await tellViolations(result, seed);
    return without === undefined ? isKept : reportFinding(result.violations);
  },
});

async function tellViolations({ violations, history }: RouterRunResult, seed: number): Promise<void> {
  const broken = new Set(violations.map(({ callId }) => callId));
  const calls = history.calls.filter(({ callId }) => broken.has(callId));
  const told = violations.map(({ rule, callId, what }) => `${rule}: ${callId}: ${what}`);
  await reportViolations(`router-seed-${seed}`, told, { violations, ...history, calls });
}
