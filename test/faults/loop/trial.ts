/**
 * One trial: a run, its point, a fault there, and what became of it.
 *
 *   session ─▶ create ─▶ watchers ─▶ … the point: the fault … ─▶ the end ─▶ (a next run, for a fault still to come) ─▶ check
 */

import { createRandom } from "../random.ts";
import { retryRequest } from "../retry-request.ts";
import { createAttempt } from "./attempt.ts";
import { checkHistory } from "./history/check.ts";
import type { RunHistory, Violation } from "./history/history.ts";
import { openNews } from "./peers/news.ts";
import { type Choices, choose } from "./plan/choices.ts";
import type { Pair } from "./plan/points.ts";
import { scriptOf, shortScript } from "./plan/script.ts";
import { type Struck, strike } from "./strike.ts";
import type { Reached, Subject } from "./subject.ts";
import { agentName, type World } from "./world.ts";

export interface Trial {
  readonly pair: Pair;
  /** Short, unique, and of one length in a suite. */
  readonly token: string;
  readonly seed: number;
}

export interface TrialOutcome {
  readonly trial: Trial;
  /** Whether the fault has happened at the point. */
  readonly isHit: boolean;
  readonly histories: readonly RunHistory[];
  /** Runs that started by themselves. */
  readonly ownRunIds: readonly string[];
  readonly violations: readonly Violation[];
  readonly durationMs: number;
}

/** Longer than a machine without any time to spare needs. */
const openMs = 240_000;

export async function runTrial(world: World, trial: Trial): Promise<TrialOutcome> {
  const startedAtMs = performance.now();
  const { pair, token, seed } = trial;
  const random = createRandom(seed);
  const choices = choose(pair, random);
  const sessionId = `s-${token}`;
  let isHit = false;
  const hit = () => {
    isHit = true;
  };
  const open = () => world.sessions.createSession({ agent: agentName, sessionId }, { timeoutMs: 5_000 });
  await retryRequest(open, startedAtMs + openMs);

  using news = choices.hasNews ? openNews(world, { token, sessionId }) : undefined;
  const first = createAttempt(world, { token, sessionId, script: scriptOf(choices), choices, news });
  first.arm((reached, attempt) => {
    const { subject, client } = attempt;
    const victim = victimOf(reached, subject, choices);
    const struck: Struck = {
      world,
      random,
      client,
      sessionId,
      runId: subject.runId,
      victim,
      held: reached.held,
      isHolder: victim === subject.holder,
      latestEpoch: () => subject.epoch,
      hasEnded: () => subject.hasEnded,
      later: (deed) => subject.later(deed, hit),
      onHit: hit,
    };
    if (choices.cancelsMeanwhile) void attempt.cancel();
    return strike(pair.fault, struck);
  }, pair.point);
  const histories = [await first.run(random)];
  const { pending } = first.subject;
  if (pending !== undefined || choices.hasNextRun) {
    const quiet = { ...choices, turn: 1, cancelAt: undefined, firstKillAt: undefined };
    const next = { token: `${token}n`, sessionId, script: shortScript, choices: quiet };
    const second = createAttempt(world, next);
    if (pending !== undefined) second.subject.later(pending.fault, pending.onDone);
    histories.push(await second.run(random));
  }
  const { violations: ofNews = [], ownRunIds = [] } = (await news?.check()) ?? {};
  const violations = [...histories.flatMap(checkHistory), ...ofNews];
  return { trial, isHit, histories, ownRunIds, violations, durationMs: performance.now() - startedAtMs };
}

function victimOf({ point, victim }: Reached, { router, holder }: Subject, { hitsRouter, hitsHolder }: Choices) {
  if (hitsRouter) return router ?? victim;
  return point === "canceling" && hitsHolder ? (holder ?? victim) : victim;
}
