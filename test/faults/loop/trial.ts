/**
 * One trial: a run, its point, a fault there, and what became of it.
 *
 *   session ─▶ create ─▶ watchers ─▶ … the point: the fault … ─▶ the end ─▶ (a next run, for a fault still to come) ─▶ check
 */

import { fromBinary } from "@bufbuild/protobuf";
import { type RunEvent, RunEventSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { readSubject } from "#runtime/bus/read.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Verdict } from "../../harness/nats-proxy.ts";
import { persist } from "../persist.ts";
import { createRandom, type Random } from "../random.ts";
import { createRunClient, type RunClient } from "./client.ts";
import { checkHistory } from "./history/check.ts";
import type { RunHistory, Violation, Watched } from "./history/history.ts";
import type { Pair, Point } from "./points.ts";
import { classesByTool, type Script, scriptOf, shortScript } from "./script.ts";
import { type Struck, strike } from "./strike.ts";
import { createSubject, type Reached, type Subject } from "./subject.ts";
import { watch } from "./watcher.ts";
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
  readonly violations: readonly Violation[];
  readonly durationMs: number;
}

const trialMs = 60_000;
/** How long watchers may take from the end of the run to theirs. */
const watchersMs = 10_000;

/** What the seed decides beside the pair. */
interface Choices {
  readonly parks: boolean;
  readonly turn: number;
  readonly tool: string;
  readonly hitsRouter: boolean;
  readonly cancelAt: Point | undefined;
  /** Where the first process is killed, if the point is in the recovery. */
  readonly firstKillAt: Point | undefined;
  readonly hasNextRun: boolean;
  readonly parallelToolCalls: boolean;
  /** Whether the victim of a cancellation is the process that works on the run, not the one that was asked. */
  readonly hitsHolder: boolean;
  /** Whether the run is cancelled while its process is frozen with a turn in its hand. */
  readonly cancelsMeanwhile: boolean;
}

/** Points of a turn with calls, and the listing of tools, which are listed once unless they change. */
const turnsWithTools: readonly Point[] = ["before the model call", "in mid arguments", "some calls done", "recorded"];

function choose({ point, fault }: Pair, random: Random): Choices {
  const cancelAt =
    point === "cancelling" ? random.pick<Point>(["in mid text", "effect done, not recorded", "parked"]) : undefined;
  const parks = point === "parked" || cancelAt === "parked" || random.next() < 0.25;
  const lastTurn = parks ? 3 : 2;
  const mayBeLater = !turnsWithTools.includes(point) && cancelAt === undefined;
  const turn = mayBeLater && random.next() < 0.4 ? lastTurn : 1;
  const early: Point[] = ["after claim", "in mid text", "after commit", "effect done, not recorded"];
  return {
    parks,
    turn: point === "in mid arguments" && parks && random.next() < 0.5 ? 2 : turn,
    tool: random.next() < 0.6 ? "send" : random.pick([...classesByTool.keys()]),
    hitsRouter: point === "effect done, not recorded" && ["kill -9", "SIGSTOP"].includes(fault) && random.next() < 0.4,
    cancelAt,
    firstKillAt: point === "during recovery" ? random.pick(early) : undefined,
    parallelToolCalls: ["some calls done"].includes(point) || random.next() < 0.6,
    hitsHolder: random.next() < 0.5,
    cancelsMeanwhile: fault === "SIGSTOP" && ["before commit", "after commit"].includes(point) && random.next() < 0.5,
    hasNextRun: ["cancelling", "terminal written, not sent"].includes(point) && random.next() < 0.5,
  };
}

export async function runTrial(world: World, trial: Trial): Promise<TrialOutcome> {
  const startedAtMs = performance.now();
  const { pair, token, seed } = trial;
  const random = createRandom(seed);
  const choices = choose(pair, random);
  const giveUpAtMs = startedAtMs + trialMs;
  const sessionId = `s-${token}`;
  let isHit = false;
  const hit = () => {
    isHit = true;
  };
  const open = () => world.sessions.createSession({ agent: agentName, sessionId }, { timeoutMs: 5_000 });
  await persist(open, giveUpAtMs);

  const first = createAttempt(world, { token, sessionId, script: scriptOf(choices), choices, giveUpAtMs });
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
    const next = { token: `${token}n`, sessionId, script: shortScript, choices: quiet, giveUpAtMs };
    const second = createAttempt(world, next);
    if (pending !== undefined) second.subject.later(pending.fault, pending.onDone);
    histories.push(await second.run(random));
  }
  const violations = histories.flatMap(checkHistory);
  return { trial, isHit, histories, violations, durationMs: performance.now() - startedAtMs };
}

function victimOf({ point, victim }: Reached, { router, holder }: Subject, { hitsRouter, hitsHolder }: Choices) {
  if (hitsRouter) return router ?? victim;
  return point === "cancelling" && hitsHolder ? (holder ?? victim) : victim;
}

interface AttemptOptions {
  readonly token: string;
  readonly sessionId: string;
  readonly script: Script;
  readonly choices: Choices;
  readonly giveUpAtMs: number;
}

type Strike = (
  reached: Reached,
  attempt: { subject: Subject; client: RunClient; cancel: () => Promise<void> },
) => Promise<Verdict>;

/** One run of the trial. */
function createAttempt(world: World, options: AttemptOptions) {
  const { token, sessionId, script, choices, giveUpAtMs } = options;
  const { parallelToolCalls } = choices;
  const client = createRunClient(world, { token, sessionId, giveUpAtMs, parallelToolCalls });
  const struck = Promise.withResolvers<void>();
  const requests: Promise<void>[] = [];
  const refusals: string[] = [];
  let armed: { strike: Strike; point: Point } | undefined;
  let firstKillAt = choices.firstKillAt;
  let cancelAt = choices.cancelAt;

  function request(answer: Promise<void>): Promise<void> {
    const settled = answer.catch((error: unknown) => void refusals.push(messageFromUnknown(error)));
    requests.push(settled);
    return settled;
  }

  const cancel = () => request(client.cancel(subject.runId));

  function onReached(reached: Reached): Promise<Verdict> | undefined {
    if (reached.point === cancelAt) {
      cancelAt = undefined;
      const cancelled = cancel();
      const over = Promise.race([cancelled, struck.promise]);
      return reached.held === undefined ? over.then(() => "pass" as const) : undefined;
    }
    if (reached.point === firstKillAt) {
      firstKillAt = undefined;
      return reached.victim.kill().then(() => "drop" as const);
    }
    if (armed === undefined || reached.point !== armed.point || firstKillAt !== undefined) return undefined;
    const { strike: blow } = armed;
    armed = undefined;
    return blow(reached, { subject, client, cancel }).finally(struck.resolve);
  }

  const subject = createSubject({
    world,
    token,
    sessionId,
    script,
    turn: choices.turn,
    tool: choices.tool,
    onReached,
    onParked: (callIds) => {
      if (choices.cancelAt !== "parked") void request(client.answer(subject.runId, callIds));
    },
  });

  return {
    subject,
    arm(blow: Strike, point: Point) {
      armed = { strike: blow, point };
      if (point === "some calls done") subject.keepAnswers(struck.promise, 1);
    },
    async run(random: Random): Promise<RunHistory> {
      using _eyes = world.watch(subject);
      const runId = await client.create();
      const watched = await watchToEnd(world, { subject, runId, giveUpAtMs, random });
      struck.resolve();
      await Promise.all(requests);
      await world.healthy();
      const events = await readLog(world, runId);
      return {
        runId,
        toldIds: client.toldIds,
        events,
        eventCountAtLast: events.length,
        effects: subject.effects,
        classesByTool,
        watched,
        prompts: subject.prompts,
        cancelledAtMs: client.cancelledAtMs,
        acknowledgedCallIds: client.acknowledgedCallIds,
        refusals,
      };
    },
  };
}

/** Three clients: one that stays, one that leaves and comes back, one that wants no deltas and comes in the middle. */
async function watchToEnd(
  world: World,
  { subject, runId, giveUpAtMs, random }: { subject: Subject; runId: string; giveUpAtMs: number; random: Random },
): Promise<Watched[]> {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), Math.max(0, giveUpAtMs - performance.now()));
  const common = { runs: world.runs, runId, signal: giveUp.signal, onSeen: subject.onSeen };
  const forever = Number.POSITIVE_INFINITY;
  const leavesAfter = 3 + Math.floor(random.next() * 12);
  const watchers = [
    watch({ ...common, name: "stays", fromSequence: 0, includeDeltas: true, leavesAfter: forever }),
    watch({ ...common, name: `leaves after ${leavesAfter}`, fromSequence: 0, includeDeltas: true, leavesAfter }),
    watch({ ...common, name: "from the middle", fromSequence: 2, includeDeltas: false, leavesAfter: 2 }),
  ];
  await Promise.race(watchers);
  clearTimeout(timer);
  const patience = setTimeout(() => giveUp.abort(), watchersMs);
  const watched = await Promise.all(watchers);
  clearTimeout(patience);
  return watched;
}

async function readLog(world: World, runId: string): Promise<RunEvent[]> {
  const stored = await Array.fromAsync(readSubject(world.bus, `toolbus.run.${runId}`));
  return stored.map(({ data }) => fromBinary(RunEventSchema, data));
}
