import { delay } from "#runtime/time/delay.ts";
import { createRandom, type Random } from "../random.ts";
import { checkRouterHistory } from "./check/check.ts";
import type { RouterHistory, Violation } from "./check/history.ts";
import { readOutcome, settled } from "./check/outcome.ts";
import { call } from "./load/callers.ts";
import { watchPulses } from "./load/pulse.ts";
import { Witness } from "./load/witness.ts";
import { peers, type WatcherWord } from "./setting.ts";
import { strikeRouters } from "./strikes.ts";
import { openWorld, type World } from "./world.ts";

export interface RouterRunOptions {
  readonly tree: string;
  readonly seed: number;
  readonly minutes: number;
  readonly calls: number;
  readonly kills: number;
  readonly onProgress: (line: string) => void;
}

export interface RouterRunResult {
  readonly history: RouterHistory;
  readonly violations: readonly Violation[];
  readonly durationMs: number;
}

const inFlight = 48;
/** How many submitters race for a call. */
const mostSubmitters = 4;
const progressMs = 5_000;

/** How long it goes on for its calls and kills: a busy machine takes its time. */
const mostMs = (minutes: number) => Math.max(5, 5 * minutes) * 60_000;

/** Calls, while routers are killed and frozen; then everything that is under way comes to its end, and is judged. */
export async function runRouterFaults(options: RouterRunOptions): Promise<RouterRunResult> {
  await using world = await openWorld(options.tree);
  const random = createRandom(options.seed);
  const witness = new Witness();
  const ordered = { submissions: 0 };
  world.watchers.onWord((word) => {
    witness.onWatcherWord(word);
    if (word.kind === "done") order(world, random, ordered, word);
  });
  world.submitters.onWord((word) => witness.onSubmitterWord(word));
  const startedAtMs = performance.now();
  using _starved = watchPulses(world.bus, (one) => void witness.strikes.push(one));
  using _ = tellProgress(options, witness, startedAtMs);
  const lasting = Promise.all([callAll(world, witness, random, options), strike(world, witness, random, options)]);
  const whole = lasting.then(() => settled(world, witness, ordered));
  await Promise.race([whole, world.watchers.broken, world.submitters.broken]);
  const history = await readOutcome(world, witness);
  const ends = world.unaskedEnds.map((what) => ({ rule: "routers end only when they are killed", callId: "", what }));
  const violations = [...checkRouterHistory(history), ...ends];
  return { history, violations, durationMs: performance.now() - startedAtMs };
}

/** What a watcher has executed, some of the submitters say, all at once. */
function order(
  { submitters }: World,
  random: Random,
  ordered: { submissions: number },
  { callId, number, watcher }: Extract<WatcherWord, { kind: "done" }>,
): void {
  const racing = 1 + Math.floor(random.next() * mostSubmitters);
  for (const submitter of random.shuffled([...Array(peers).keys()]).slice(0, racing)) {
    const resultJson = JSON.stringify({ number, watcher, submitter: `submitter-${submitter + 1}` });
    ordered.submissions += 1;
    submitters.send({ submitter, callId, resultJson });
  }
}

function strike({ routers }: World, witness: Witness, random: Random, { kills, minutes }: RouterRunOptions) {
  const minMs = minutes * 60_000;
  const onStrike = (one: Witness["strikes"][number]) => void witness.strikes.push(one);
  return strikeRouters({ routers, random, kills, minMs, maxMs: mostMs(minutes), onStrike });
}

/** So many at an even pace, and on until the last strike. */
async function callAll(world: World, witness: Witness, random: Random, options: RouterRunOptions): Promise<void> {
  const { calls, kills, minutes } = options;
  const minMs = minutes * 60_000;
  const startedAtMs = performance.now();
  const passedMs = () => performance.now() - startedAtMs;
  const isOver = () => {
    const hasAll = witness.calls.size >= calls && witness.strikes.filter(({ kind }) => kind === "kill").length >= kills;
    return (passedMs() >= minMs && hasAll) || passedMs() > mostMs(minutes);
  };
  const caller = async () => {
    while (!isOver()) {
      const number = witness.calls.size + 1;
      const dueInMs = (number / calls) * minMs - passedMs();
      if (dueInMs > 0) await delay(Math.min(dueInMs, 100));
      else await call(world, witness, random, number);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
}

function tellProgress({ onProgress }: RouterRunOptions, witness: Witness, startedAtMs: number): Disposable {
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    const calls = [...witness.calls.values()];
    const answered = calls.filter(({ answer }) => answer !== undefined).length;
    const kills = witness.strikes.filter(({ kind }) => kind === "kill").length;
    const freezes = witness.strikes.filter(({ kind }) => kind === "freeze").length;
    onProgress(`${seconds} s: ${calls.length} calls, ${answered} answered, ${kills} kills, ${freezes} freezes`);
  }, progressMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
