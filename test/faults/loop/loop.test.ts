// The short form of `npm run faults -- loop`: real processes, a few points with each kind of fault, one seed.

import { expect, it } from "vitest";
import { projectRoot } from "../../architecture/source-files.ts";
import { runCampaign } from "./campaign.ts";
import { nameOf, type Pair } from "./plan/points.ts";
import type { TrialOutcome } from "./trial.ts";

/** Seconds, unless the machine is busy. */
const minutes = 8;
const quick = { seed: 7, minutes, suites: 1, quietLanes: 2 };

const pairs: Pair[] = [
  { point: "after accept", fault: "kill -9" },
  { point: "in mid text", fault: "kill -9" },
  { point: "before commit", fault: "SIGSTOP" },
  { point: "effect done, not recorded", fault: "kill -9" },
  { point: "after commit", fault: "broker kill" },
  { point: "during recovery", fault: "duplicate delivery" },
  { point: "after claim", fault: "lost acknowledgement" },
  { point: "recorded", fault: "lost acknowledgement" },
  { point: "in mid text", fault: "provider reset" },
  { point: "in mid arguments", fault: "provider garbage" },
  { point: "parked", fault: "provider 429" },
  { point: "canceling", fault: "duplicate delivery" },
  { point: "ended with news", fault: "spaces kill -9" },
  { point: "terminal written, not sent", fault: "lost acknowledgement" },
];

it("LOOP-13 LOOP-14 struck at its points, no run is lost, none ends twice, effects are as promised, clients see the record", {
  timeout: (minutes + 1) * 60_000,
}, async () => {
  const told: string[] = [];
  const onOutcome = ({ trial, violations }: TrialOutcome) => {
    for (const { rule, what } of violations) told.push(`${nameOf(trial.pair)}: ${rule}: ${what}`);
  };
  const result = await runCampaign({ ...quick, points: pairs.length, pairs, tree: projectRoot, onOutcome });
  expect(told).toEqual([]);
  expect(result.violations).toEqual([]);
  expect(result.missed).toEqual([]);
});
