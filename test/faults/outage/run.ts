import { fork } from "node:child_process";
import { once } from "node:events";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { createRandom } from "../random.ts";
import { checkOutages } from "./check.ts";
import {
  type ClientCall,
  type Health,
  type OutageHistory,
  type Stall,
  type Strike,
  type StrikeKind,
  toolNames,
  type Violation,
} from "./history.ts";
import { namesByTool } from "./outside/catalogue.ts";
import type { LargeCalls, LargeEnd } from "./outside/large-calls.ts";
import { toldOf } from "./outside/told.ts";
import { type StrikeOptions, strike } from "./strikes.ts";
import { openWorld, type World } from "./world.ts";

export interface OutageOptions extends Pick<StrikeOptions, "leastMs" | "mostMs" | "slowBroker"> {
  readonly tree: string;
  readonly seed: number;
  readonly nodes: 1 | 3;
  /** What may happen, and how often in all: each kind once before one comes again. */
  readonly kinds: readonly StrikeKind[];
  readonly strikes: number;
  readonly onProgress: (line: string) => void;
}

export interface OutageResult {
  readonly history: OutageHistory;
  readonly violations: readonly Violation[];
  readonly unaskedEnds: readonly string[];
  /** The last lines of each service. */
  readonly lines: Readonly<Record<string, readonly string[]>>;
}

type Asked = Omit<ClientCall, "effects">;

const CALLERS = 8;
const CALM_MS = 3_000;
/** A client is more patient than any promise. */
const CLIENT_TIMEOUT_MS = 30_000;
const LARGE_CALLS = 12;
const TICK_MS = 100;
const STALLED_MS = 600;

export async function runOutages(options: OutageOptions): Promise<OutageResult> {
  await using world = await openWorld(options);
  await warmUp(world);
  const random = createRandom(options.seed);
  const over = new AbortController();
  const asked: Asked[] = [];
  const health: Health[] = [];
  const callers = Array.from({ length: CALLERS }, (_, index) => callAlways(world, index, over.signal, asked));
  const stalls: Stall[] = [];
  const watching = [watchHealth(world, over.signal, health), watchStalls(over.signal, stalls)];
  const strikes: Strike[] = [];
  let round: StrikeKind[] = [];
  for (let count = 0; count < options.strikes; count += 1) {
    await delay(Math.max(CALM_MS, (strikes.at(-1)?.wellAtMs ?? 0) - performance.now()));
    await Promise.all(world.services.map((service) => service.ready()));
    if (round.length === 0) round = random.shuffled(options.kinds);
    const callLarge = () => callAllLarge(world, count, asked);
    strikes.push(await strike(world, round.pop()!, { ...options, random, callLarge }));
    const { kind, instance, fromMs, toMs } = strikes.at(-1)!;
    options.onProgress(`${kind} of ${instance} for ${Math.round(toMs - fromMs)} ms; ${asked.length} calls so far`);
  }
  await delay(Math.max(CALM_MS, strikes.at(-1)!.wellAtMs + CALM_MS - performance.now()));
  over.abort();
  await Promise.all([...callers, ...watching]);
  const calls = asked.map((call) => ({ ...call, effects: world.effects.get(call.key) ?? 0 }));
  const history = { calls, strikes, health, stalls };
  const lines = Object.fromEntries(world.services.map((service) => [service.instance, [...service.lines]]));
  return { history, violations: checkOutages(history), unaskedEnds: world.unaskedEnds, lines };
}

/** Until each session has each tool: processes and MCP servers start when something first needs them. */
async function warmUp(world: World): Promise<void> {
  const calls = world.sessionIds.flatMap((_, index) => toolNames.map((tool) => ({ index, tool })));
  const succeeds =
    ({ index, tool }: (typeof calls)[number]) =>
    async () => {
      const { told } = await callOnce(world, { tool, key: `c${index}x${Math.floor(Math.random() * 1e9) + 1e9}` });
      return told.kind === "result";
    };
  await Promise.all(calls.map((call) => until(succeeds(call), { timeoutMs: 60_000 })));
}

async function callAlways(world: World, caller: number, signal: AbortSignal, asked: Asked[]): Promise<void> {
  for (let count = caller; !signal.aborted; count += 1) {
    const tool = toolNames[count % toolNames.length]!;
    asked.push(await callOnce(world, { tool, key: `c${caller}x${count}` }));
    await delay(20);
  }
}

async function callAllLarge(world: World, round: number, asked: Asked[]): Promise<void> {
  const { url, sessionIds } = world;
  const keys = Array.from({ length: LARGE_CALLS }, (_, index) => `large${round}x${index}`);
  const child = fork(new URL("outside/large-calls.ts", import.meta.url), { serialization: "advanced" });
  const ended = once(child, "message");
  const fromMs = performance.now();
  child.send({ url, sessionIds, keys } satisfies LargeCalls);
  const [ends] = (await ended) as [LargeEnd[]];
  const toMs = performance.now();
  asked.push(...ends.map((end) => ({ ...end, tool: "hosted_pure" as const, fromMs, toMs, isLarge: true })));
}

async function callOnce(world: World, { tool, key }: Pick<ClientCall, "tool" | "key">): Promise<Asked> {
  const given = tool === "agent" ? { input: `do [${key}]` } : { key };
  const sessionId = world.sessionIds[Number(/\d+/.exec(key)?.[0]) % world.sessionIds.length]!;
  const request = { callId: key, sessionId, name: namesByTool[tool], argumentsJson: JSON.stringify(given) };
  const fromMs = performance.now();
  const told = await toldOf(world.tools, request, CLIENT_TIMEOUT_MS);
  return { key, tool, fromMs, toMs: performance.now(), told };
}

/** When this process stood still, as others of a busy machine do then. */
async function watchStalls(signal: AbortSignal, stalls: Stall[]): Promise<void> {
  for (let fromMs = performance.now(); !signal.aborted; fromMs = performance.now()) {
    await delay(TICK_MS);
    const toMs = performance.now();
    if (toMs - fromMs > STALLED_MS) stalls.push({ fromMs, toMs });
  }
}

async function watchHealth({ url }: World, signal: AbortSignal, health: Health[]): Promise<void> {
  for (; !signal.aborted; await delay(500)) {
    const response = await fetch(`${url}/healthz`).catch(() => undefined); // told as no answer
    const text = (await response?.text()) ?? "";
    health.push({ atMs: performance.now(), status: response?.status ?? 0, text });
  }
}
