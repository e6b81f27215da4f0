import { tmpdir } from "node:os";
import { join } from "node:path";
import { faultCommand, listOf, Misuse } from "../command/command.ts";
import { named, number, word, words } from "../command/options.ts";
import { reportFinding } from "../command/report.ts";
import { openTreeCopy } from "../processes/tree.ts";
import { type CampaignOptions, type CampaignResult, runCampaign } from "./campaign.ts";
import type { Violation } from "./history/history.ts";
import { allPairs, faults, nameOf, type Pair, points as pointMeanings } from "./plan/points.ts";
import { withouts } from "./plan/without.ts";
import { countsByPair, coverageTable, writeTrial } from "./report.ts";
import type { TrialOutcome } from "./trial.ts";

export const runLoopFaults = faultCommand({
  name: "loop",
  about: "Strikes runs at named points with faults, and checks what came of them from outside.",
  options: {
    seed: number("what is tried, and in which order", 1),
    minutes: number("how long at most", 20),
    points: number("how many trials", 1_000),
    only: words("P×F", "only this pair; a point or a fault alone stands for all of its pairs"),
    without: named(
      "PART",
      `takes a part away in a copy of the tree, and wants a violation: ${Object.keys(withouts).join(", ")}`,
      withouts,
    ),
    revision: word("REV", "the services as of a commit, instead of as they lie there"),
    suites: number("brokers with their services, side by side", 4),
    lanes: number("quiet trials at a time in each of them, beside one disruptive", 2),
  },
  more: `points:
${listOf(pointMeanings)}

faults:
${listOf(faults)}

Each pair that was planned has to be hit. Exit code 0: so it was, without a violation; with --without: with one.`,
  async run({ seed, minutes, points, only, without, revision, suites, lanes: quietLanes, json }) {
    const pairs = only.length === 0 ? (without?.pairs ?? allPairs) : pairsNamed(only);
    if (pairs.length === 0) throw new Misuse(`no pair is called ${only.join(", ")}`);
    await using tree = await openTreeCopy({ revision, edits: without?.edits });
    const wantsViolation = without !== undefined;
    const result = await runCampaign({
      ...{ seed, minutes, points, pairs, suites, quietLanes },
      tree: tree.directory,
      stopsAtViolation: wantsViolation,
      onOutcome: createProgress({ seed, points, json }),
    });
    return conclude(result, { json, wantsViolation });
  },
});

function pairsNamed(names: readonly string[]): Pair[] {
  const wanted = names.map((name) => name.split("×").map((part) => part.trim()));
  return allPairs.filter((pair) =>
    wanted.some((names) => names.every((name) => name === pair.point || name === pair.fault)),
  );
}

interface Shown {
  readonly seed: number;
  readonly points: number;
  readonly json: boolean;
}

function createProgress({ seed, points, json }: Shown): CampaignOptions["onOutcome"] {
  const directory = join(tmpdir(), `toolbus-faults-seed-${seed}`);
  const startedAtMs = performance.now();
  let lastToldAtMs = startedAtMs;
  let [done, hit, broken] = [0, 0, 0];
  return async (outcome, world) => {
    done += 1;
    if (outcome.isHit) hit += 1;
    if (outcome.violations.length > 0) broken += 1;
    if (json) console.log(JSON.stringify(lineFrom(outcome)));
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
  { json, wantsViolation }: { json: boolean; wantsViolation: boolean },
): boolean {
  const all: Violation[] = [...outcomes.flatMap((outcome) => outcome.violations), ...violations];
  const hit = outcomes.filter(({ isHit }) => isHit).length;
  const counts = Object.fromEntries(countsByPair(outcomes));
  const summary = { trials: outcomes.length, points: hit, missed: missed.map(nameOf), violations: all.length, counts };
  if (json) console.log(JSON.stringify(summary));
  if (!wantsViolation) console.error(coverageTable(outcomes));
  for (const { rule, what } of violations) console.error(`VIOLATION ${rule}: ${what}`);
  if (wantsViolation) return reportFinding(all);
  for (const pair of missed) console.error(`NEVER HIT ${nameOf(pair)}`);
  console.error(`${hit} points, ${all.length} violations, ${missed.length} pairs never hit`);
  return all.length === 0 && missed.length === 0;
}
