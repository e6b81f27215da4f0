// Clients that leave after each update and come back where they stood, while those who serve them freeze, fall silent and die.

import { create } from "@bufbuild/protobuf";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent, textOfContent } from "#runtime/content/text.ts";
import { delay } from "#runtime/time/delay.ts";
import { openConnection } from "../../../cli/connection.ts";
import { checkWatched } from "../loop/history/check-clients.ts";
import type { RunHistory, Seen, Violation, Watched } from "../loop/history/history.ts";
import { watch } from "../loop/peers/watcher.ts";
import { createRandom, type Random } from "../random.ts";
import { retryRequest } from "../retry-request.ts";
import { agentName, type Linked, type World } from "./world.ts";

export interface ResumeOptions {
  readonly seed: number;
  /** How many runs are followed; so many at a time. */
  readonly runs: number;
  readonly atOnce: number;
}

export interface ResumeResult {
  readonly violations: readonly Violation[];
  /** How often a client came back where it stood, in the middle of a turn. */
  readonly resumes: number;
  readonly resets: number;
  readonly faults: Readonly<Record<string, number>>;
  /** Turns whose end a client had from the committed turn alone, without the deltas before it. */
  readonly cutShort: number;
}

const runMs = 300_000;

export async function runResumes(world: World, { seed, runs, atOnce }: ResumeOptions): Promise<ResumeResult> {
  const over = new AbortController();
  const faults: Record<string, number> = {};
  const striking = strikeOn(world, { random: createRandom(seed), signal: over.signal, faults });
  const left = Array.from({ length: runs }).keys();
  const histories: Pick<RunHistory, "events" | "watched">[] = [];
  const follow = async () => {
    for (const _ of left) histories.push(await followRun(world));
  };
  await Promise.all(Array.from({ length: atOnce }, follow)).finally(() => over.abort());
  await striking;
  const all = histories.flatMap(({ watched }) => watched);
  return {
    violations: histories.flatMap((history) => [...checkWatched(history as RunHistory)]),
    resumes: all.reduce((sum, watched) => sum + resumesIn(watched), 0),
    resets: all.reduce((sum, { seen }) => sum + seen.filter(({ kind }) => kind === "replaced").length, 0),
    faults,
    cutShort: all.reduce((sum, watched) => sum + cutShortIn(watched), 0),
  };
}

/** One run, with a client that stays, one that comes back at each update, and one at every third. */
async function followRun({ url }: World): Promise<Pick<RunHistory, "events" | "watched">> {
  const runs = openConnection({ url, apiKey: undefined }).client(RunService);
  const message = { role: Role.USER, content: textContent("speak") };
  const input = [create(InputItemSchema, { item: { case: "message", value: message } })];
  const request = { agent: agentName, input, idempotencyKey: crypto.randomUUID() };
  const givesUpAtMs = performance.now() + runMs;
  const { run } = await retryRequest(() => runs.createRun(request, { timeoutMs: 10_000 }), givesUpAtMs);
  const runId = run?.id ?? "";
  const signal = AbortSignal.timeout(runMs);
  const common = { runs, runId, fromSequence: 0, includeDeltas: true, signal, onSeen: () => {} };
  const [forever, always] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const watched = await Promise.all([
    watch({ ...common, name: `${runId}, stays`, leavesAfter: forever }),
    watch({ ...common, name: `${runId}, leaves at each`, leavesAfter: 1, mostLeaves: always }),
    watch({ ...common, name: `${runId}, leaves at every third`, leavesAfter: 3, mostLeaves: always }),
  ]);
  const whole = { ...common, includeDeltas: false, signal: AbortSignal.timeout(runMs) };
  const record = await watch({ ...whole, name: "record", leavesAfter: forever });
  const events = record.seen.flatMap((seen) => (seen.kind === "event" ? [seen.event] : []));
  return { events, watched };
}

/** One fault after the other, a pause between them. */
async function strikeOn(
  { gateway, orchestrators }: World,
  { random, signal, faults }: { random: Random; signal: AbortSignal; faults: Record<string, number> },
): Promise<void> {
  const freeze = async ({ service }: Linked, forMs: number) => {
    service.freeze();
    await delay(forMs);
    service.thaw();
  };
  const cut = async (linked: Linked, forMs: number) => {
    const back = delay(forMs);
    linked.cut(back);
    await back;
  };
  const kinds: Record<string, () => Promise<unknown>> = {
    "orchestrator SIGSTOP": () => freeze(random.pick(orchestrators), 300 + random.next() * 3_000),
    "orchestrator cut off": () => cut(random.pick(orchestrators), 300 + random.next() * 6_000),
    "orchestrator kill -9": () => random.pick(orchestrators).service.kill(),
    "gateway SIGSTOP": () => freeze(gateway, 300 + random.next() * 2_000),
    "gateway cut off": () => cut(gateway, 300 + random.next() * 6_000),
    "gateway kill -9": () => gateway.service.kill(),
  };
  while (!signal.aborted) {
    // The gateway is one, and nobody comes back while it is away.
    const ofGateway = random.next() < 0.2;
    const kind = random.pick(Object.keys(kinds).filter((name) => name.startsWith("gateway") === ofGateway));
    faults[kind] = (faults[kind] ?? 0) + 1;
    await kinds[kind]!();
    await delay(2_000 + random.next() * 4_000, signal).catch(() => {}); // it is over
  }
}

const isSpeech = (seen: Seen) => seen.kind === "delta" || seen.kind === "replaced";

/** As often as it leaves: by its name, after each update or after three. */
function resumesIn({ name, seen }: Watched): number {
  const leavesAfter = name.endsWith("each") ? 1 : name.endsWith("third") ? 3 : Number.POSITIVE_INFINITY;
  return seen.filter((entry, index) => isSpeech(entry) && (index + 1) % leavesAfter === 0).length;
}

function cutShortIn({ seen }: Watched): number {
  let [shown, count] = ["", 0];
  for (const entry of seen) {
    if (entry.kind === "replaced") shown = entry.replaced.text;
    if (entry.kind === "delta" && entry.delta.delta.case === "text") shown += entry.delta.delta.value;
    if (entry.kind !== "event" || entry.event.event.case !== "turnCommitted") continue;
    const { items } = entry.event.event.value;
    const text = items.map(({ item }) => (item.case === "message" ? textOfContent(item.value.content) : "")).join("");
    if (shown.length < text.length) count += 1;
    shown = "";
  }
  return count;
}
