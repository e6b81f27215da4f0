import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { type CampaignOptions, type CampaignResult, runCampaign } from "./loop/campaign.ts";
import type { Violation } from "./loop/history/history.ts";
import { allPairs, faults, nameOf, type Pair, points } from "./loop/plan/points.ts";
import { withouts } from "./loop/plan/without.ts";
import { countsByPair, coverageTable, writeTrial } from "./loop/report.ts";
import type { TrialOutcome } from "./loop/trial.ts";
import { openTreeCopy } from "./processes/tree.ts";

const table = (meanings: Readonly<Record<string, string>>) =>
  Object.entries(meanings)
    .map(([name, meaning]) => `  ${name.padEnd(26)} ${meaning}`)
    .join("\n");

const USAGE = `usage: npm run faults -- loop [options]

Strikes runs at named points with faults, and checks what came of them from outside.

  --seed N          what is tried, and in which order (1)
  --minutes M       how long at most (20)
  --points N        how many trials (1000)
  --only P×F        only this pair; a point or a fault alone stands for all of its pairs; may be given more than once
  --without PART    takes a part away in a copy of the tree, and wants a violation: ${Object.keys(withouts).join(", ")}
  --revision REV    the services as of a commit, instead of as they lie there
  --suites N        brokers with their services, side by side (4)
  --lanes N         quiet trials at a time in each of them, beside one disruptive (2)
  --json            a line of JSON a trial, and one at the end
  --help

points:
${table(points)}

faults:
${table(faults)}

Each pair that was planned has to be hit. Exit code 0: so it was, without a violation; with --without: with one.`;

const optionTypes = {
  seed: { type: "string", default: "1" },
  minutes: { type: "string", default: "20" },
  points: { type: "string", default: "1000" },
  suites: { type: "string", default: "4" },
  lanes: { type: "string", default: "2" },
  only: { type: "string", multiple: true },
  without: { type: "string" },
  revision: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

export async function runLoopFaults(args: string[]): Promise<number> {
  const parsed = parse(args);
  if (typeof parsed === "string") {
    console.error(`${parsed}\n${USAGE}`);
    return 2;
  }
  if (parsed.help) {
    console.log(USAGE);
    return 0;
  }
  const { without, revision, isJson, ...campaign } = parsed;
  await using tree = await openTreeCopy({ revision, edits: without?.edits });
  const stopsAtViolation = without !== undefined;
  const onOutcome = createProgress(parsed);
  const result = await runCampaign({ ...campaign, tree: tree.directory, stopsAtViolation, onOutcome });
  return conclude(result, { isJson, wantsViolation: stopsAtViolation });
}

type Parsed = Omit<CampaignOptions, "tree" | "onOutcome"> & {
  help: boolean;
  isJson: boolean;
  without: (typeof withouts)[string] | undefined;
  revision: string | undefined;
};

/** What the words ask for, or what is wrong with them. */
function parse(args: string[]): Parsed | string {
  try {
    const { values } = parseArgs({ args, options: optionTypes });
    const [seed, minutes, points, suites, quietLanes] = [
      values.seed,
      values.minutes,
      values.points,
      values.suites,
      values.lanes,
    ].map(Number) as [number, number, number, number, number];
    const unfit = [seed, minutes, points, suites, quietLanes].some((value) => !(value >= 0));
    if (unfit) return "--seed, --minutes, --points, --suites and --lanes are numbers";
    const without = values.without === undefined ? undefined : withouts[values.without];
    if (values.without !== undefined && without === undefined) return `there is no part ${values.without}`;
    const pairs = values.only === undefined ? (without?.pairs ?? allPairs) : pairsNamed(values.only);
    if (pairs.length === 0) return `no pair is called ${values.only}`;
    const { help, json: isJson, revision } = values;
    return { seed, minutes, points, suites, quietLanes, without, pairs, help, isJson, revision };
  } catch (error) {
    return messageFromUnknown(error);
  }
}

function pairsNamed(names: readonly string[]): Pair[] {
  const wanted = names.map((name) => name.split("×").map((part) => part.trim()));
  return allPairs.filter((pair) =>
    wanted.some((names) => names.every((name) => name === pair.point || name === pair.fault)),
  );
}

function createProgress({ seed, points, isJson }: Parsed): CampaignOptions["onOutcome"] {
  const directory = join(tmpdir(), `toolbus-faults-seed-${seed}`);
  const startedAtMs = performance.now();
  let lastToldAtMs = startedAtMs;
  let [done, hit, broken] = [0, 0, 0];
  return async (outcome, world) => {
    done += 1;
    if (outcome.isHit) hit += 1;
    if (outcome.violations.length > 0) broken += 1;
    if (isJson) console.log(JSON.stringify(lineFrom(outcome)));
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    if (outcome.violations.length > 0) {
      const path = await writeTrial(directory, outcome, world);
      const words = outcome.violations.map(({ rule, what }) => `  ${rule}: ${what}`);
      console.error([`VIOLATION ${nameOf(outcome.trial.pair)} (${path})`, ...words].join("\n"));
    }
    if (performance.now() - lastToldAtMs < 10_000) return;
    lastToldAtMs = performance.now();
    const all = Number.isFinite(points) ? ` of ${points}` : "";
    console.error(`${seconds} s: ${done} trials${all}, ${hit} hit, ${broken} with violations`);
  };
}

function lineFrom({ trial, isHit, violations, durationMs }: TrialOutcome) {
  const { pair, token, seed } = trial;
  return { ...pair, token, seed, isHit, durationMs: Math.round(durationMs), violations };
}

function conclude(
  { outcomes, violations, missed }: CampaignResult,
  { isJson, wantsViolation }: { isJson: boolean; wantsViolation: boolean },
): number {
  const all: Violation[] = [...outcomes.flatMap((outcome) => outcome.violations), ...violations];
  const hit = outcomes.filter(({ isHit }) => isHit).length;
  const counts = Object.fromEntries(countsByPair(outcomes));
  const summary = { trials: outcomes.length, points: hit, missed: missed.map(nameOf), violations: all.length, counts };
  if (isJson) console.log(JSON.stringify(summary));
  if (!wantsViolation) console.error(coverageTable(outcomes));
  for (const { rule, what } of violations) console.error(`VIOLATION ${rule}: ${what}`);
  if (wantsViolation) {
    console.error(all.length > 0 ? "the checker found it" : "the checker found nothing");
    return all.length > 0 ? 0 : 1;
  }
  for (const pair of missed) console.error(`NEVER HIT ${nameOf(pair)}`);
  console.error(`${hit} points, ${all.length} violations, ${missed.length} pairs never hit`);
  return all.length > 0 || missed.length > 0 ? 1 : 0;
}
