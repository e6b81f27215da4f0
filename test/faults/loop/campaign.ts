/** Many trials in several suites at once. In each suite one disruptive trial goes on at a time, and quiet ones beside it. */

import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Violation } from "./history/history.ts";
import { createPlan, type PlanOptions } from "./plan/plan.ts";
import type { Pair } from "./plan/points.ts";
import { runTrial, type Trial, type TrialOutcome } from "./trial.ts";
import { openWorld, type World } from "./world.ts";

export interface CampaignOptions extends PlanOptions {
  /** Where the services come from. */
  readonly tree: string;
  readonly minutes: number;
  readonly suites: number;
  /** Quiet trials that go on at the same time in each suite. */
  readonly quietLanes: number;
  /** Ends with the first violation. */
  readonly stopsAtViolation?: boolean | undefined;
  readonly onOutcome: (outcome: TrialOutcome, world: World) => void;
}

export interface CampaignResult {
  readonly outcomes: readonly TrialOutcome[];
  /** What no single trial shows. */
  readonly violations: readonly Violation[];
  /** Pairs that were planned and not hit. */
  readonly missed: readonly Pair[];
}

export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const plan = createPlan(options);
  const endsAtMs = performance.now() + options.minutes * 60_000;
  const outcomes: TrialOutcome[] = [];
  const opened = Promise.withResolvers<void>();
  let isOver = false;
  const isTimeUp = () => isOver || performance.now() >= endsAtMs;

  async function lane(world: World, kind: "disruptive" | "quiet"): Promise<void> {
    while (!isTimeUp()) {
      const trial = plan.next(kind);
      if (trial === undefined) return;
      const outcome = await runTrial(world, trial).catch((error: unknown) => failedTrial(trial, error));
      outcomes.push(outcome);
      options.onOutcome(outcome, world);
      if (!outcome.isHit) plan.again(trial);
      if (outcome.violations.length > 0 && options.stopsAtViolation) isOver = true;
    }
  }

  async function suite(_: unknown, index: number): Promise<Violation[]> {
    if (index > 0) await opened.promise; // the first one compiles, the others find it compiled
    await using world = await openWorld({ tree: options.tree }).finally(opened.resolve);
    const own: TrialOutcome[] = [];
    const quiet = Array.from({ length: options.quietLanes }, () => lane(world, "quiet"));
    await Promise.all([lane(world, "disruptive"), ...quiet]);
    own.push(...outcomes);
    return [...(await sweep(world, own)), ...world.unaskedEnds.map((what) => ({ rule: "no service ends", what }))];
  }

  const found = await Promise.all(Array.from({ length: options.suites }, suite));
  const hit = new Set(outcomes.filter(({ isHit }) => isHit).map(({ trial }) => trial.pair));
  return { outcomes, violations: found.flat(), missed: plan.pairs.filter((pair) => !hit.has(pair)) };
}

function failedTrial(trial: Trial, error: unknown): TrialOutcome {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const violation = { rule: "the trial itself", what: `${messageFromUnknown(error)}\n${stack}` };
  return { trial, isHit: false, histories: [], ownRunIds: [], violations: [violation], durationMs: 0 };
}

/** When all is over: no log has grown since its run's end, and there is none that nobody was told of. */
async function sweep(world: World, outcomes: readonly TrialOutcome[]): Promise<Violation[]> {
  await world.healthy();
  const { state } = await world.bus.manager.streams.info("TOOLBUS_RUNS", { subjects_filter: "toolbus.run.*" });
  const counts = new Map(
    Object.entries(state.subjects ?? {}).map(([subject, count]) => [subject.slice("toolbus.run.".length), count]),
  );
  const violations: Violation[] = [];
  for (const { events, runId } of outcomes.flatMap(({ histories }) => histories)) {
    const count = counts.get(runId);
    if (count === undefined) continue; // a run of another suite
    counts.delete(runId);
    if (count === events.length) continue;
    violations.push({ rule: "one end", what: `run ${runId} had ${events.length} events at its end, and has ${count}` });
  }
  for (const runId of outcomes.flatMap(({ ownRunIds }) => ownRunIds)) counts.delete(runId);
  const failed = outcomes.filter(({ histories }) => histories.length === 0).length;
  if (failed === 0) {
    for (const runId of counts.keys()) {
      violations.push({ rule: "one run a key", what: `nobody was told of run ${runId}, which has a log` });
    }
  }
  return violations;
}
