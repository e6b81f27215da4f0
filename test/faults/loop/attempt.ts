import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Verdict } from "../../harness/proxy/nats-proxy.ts";
import { openPatience } from "../processes/patience.ts";
import type { Random } from "../random.ts";
import type { RunHistory, Watched } from "./history/history.ts";
import { createRunClient, type RunClient } from "./peers/client.ts";
import type { News } from "./peers/news.ts";
import { watch } from "./peers/watcher.ts";
import type { Choices } from "./plan/choices.ts";
import type { Point } from "./plan/points.ts";
import { classesByTool, type Script } from "./plan/script.ts";
import { readLog } from "./run-log.ts";
import { createSubject, type Reached, type Subject } from "./subject.ts";
import type { World } from "./world.ts";

/** A run that nothing is heard of for so long is lost, and one that takes so long in all, as `openPatience` counts. */
const silenceMs = 60_000;
const runMs = 240_000;
/** For so long a request is repeated. */
const requestMs = 960_000;

interface AttemptOptions {
  readonly token: string;
  readonly sessionId: string;
  readonly script: Script;
  readonly choices: Choices;
  /** What comes into the session's inbox when the run has read it. */
  readonly news?: News | undefined;
}

const newsPoint: Point = "ended with news";

type Strike = (
  reached: Reached,
  attempt: { subject: Subject; client: RunClient; cancel: () => Promise<void> },
) => Promise<Verdict>;

/** One run of the trial. */
export function createAttempt(world: World, options: AttemptOptions) {
  const { token, sessionId, script, choices, news } = options;
  const giveUpAtMs = performance.now() + requestMs;
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

  function onReached(given: Reached): Promise<Verdict> | undefined {
    const reached = news && given.point === "terminal written, not sent" ? { ...given, point: newsPoint } : given;
    if (reached.point === cancelAt) {
      cancelAt = undefined;
      const canceled = cancel();
      const over = Promise.race([canceled, struck.promise]);
      return reached.held === undefined ? over.then(() => "pass" as const) : undefined;
    }
    if (reached.point === firstKillAt) {
      firstKillAt = undefined;
      return reached.victim.kill().then(() => "drop" as const);
    }
    if (armed === undefined || reached.point !== armed.point || firstKillAt !== undefined) return undefined;
    const { strike: blow } = armed;
    armed = undefined;
    const ready = news?.deliver() ?? Promise.resolve();
    return ready.then(() => blow(reached, { subject, client, cancel })).finally(struck.resolve);
  }

  const subject = createSubject({
    world,
    token,
    sessionId,
    script,
    turn: choices.turn,
    tool: choices.tool,
    onReached,
    onAsked: () => void (news && request(news.deliver())),
    onParked: (callIds) => {
      if (choices.cancelAt !== "parked") void request(client.answer(subject.runId, callIds));
      if (cancelAt !== "parked") return;
      cancelAt = undefined; // also when a fault beside has taken the word of it from the wire
      void cancel();
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
      const watched = await watchToEnd(world, { subject, runId, random });
      struck.resolve();
      await Promise.all(requests);
      await world.healthy();
      const records = await readLog(world.bus, runId);
      const events = records.map(({ event }) => event);
      return {
        runId,
        toldIds: client.toldIds,
        events,
        epochs: records.map(({ epoch }) => epoch),
        eventCountAtLast: events.length,
        effects: subject.effects,
        classesByTool,
        watched,
        prompts: subject.prompts,
        canceledAtMs: client.canceledAtMs,
        acknowledged: client.acknowledged,
        refusals,
      };
    },
  };
}

/** Three clients: one that stays, one that leaves and comes back, one that wants no deltas and comes in the middle. */
async function watchToEnd(
  world: World,
  { subject, runId, random }: { subject: Subject; runId: string; random: Random },
): Promise<Watched[]> {
  const giveUp = new AbortController();
  using whole = openPatience(runMs, () => giveUp.abort());
  using patience = openPatience(silenceMs, () => giveUp.abort());
  const onSeen: Subject["onSeen"] = (seen) => {
    subject.onSeen(seen);
    patience.refresh();
  };
  const common = { runs: world.runs, runId, signal: giveUp.signal, onSeen };
  const forever = Number.POSITIVE_INFINITY;
  const leavesAfter = 3 + Math.floor(random.next() * 12);
  const watchers = [
    watch({ ...common, name: "stays", fromSequence: 0, includeDeltas: true, leavesAfter: forever }),
    watch({ ...common, name: `leaves after ${leavesAfter}`, fromSequence: 0, includeDeltas: true, leavesAfter }),
    watch({ ...common, name: "behind the first", fromSequence: 1, includeDeltas: false, leavesAfter: 2 }),
  ];
  await Promise.race(watchers);
  whole[Symbol.dispose](); // those who are still there get what stands, word by word
  return await Promise.all(watchers);
}
