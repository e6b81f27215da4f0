import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { createRandom, type Random } from "../random.ts";
import { checkSilence } from "./check.ts";
import type { ClientCall, SilenceHistory, Strike, ToolName, Violation } from "./history.ts";
import { openWorld, type World } from "./world.ts";

export interface SilenceOptions {
  readonly tree: string;
  readonly seed: number;
  readonly strikes: number;
  /** How long each lasts. */
  readonly leastMs: number;
  readonly mostMs: number;
  /** The broker goes on believing in who is silent, as one with its own defaults does for minutes. */
  readonly slowBroker: boolean;
  readonly onProgress: (line: string) => void;
}

export interface SilenceResult {
  readonly history: SilenceHistory;
  readonly violations: readonly Violation[];
  readonly unaskedEnds: readonly string[];
}

const CALLERS = 8;
const CALM_MS = 3_000;
/** A client is more patient than any promise. */
const CLIENT_TIMEOUT_MS = 30_000;

export async function runSilence(options: SilenceOptions): Promise<SilenceResult> {
  await using world = await openWorld(options.tree);
  const random = createRandom(options.seed);
  const over = new AbortController();
  const asked: Omit<ClientCall, "effects">[] = [];
  const callers = Array.from({ length: CALLERS }, (_, index) => callAlways(world, `c${index}`, over.signal, asked));
  const strikes: Strike[] = [];
  for (let count = 0; count < options.strikes; count += 1) {
    await delay(CALM_MS);
    await Promise.all(world.struck.map(({ service }) => service.ready()));
    strikes.push(await strike(world, random, options));
    const { kind, instance, fromMs, toMs } = strikes.at(-1)!;
    options.onProgress(`${kind} of ${instance} for ${Math.round(toMs - fromMs)} ms; ${asked.length} calls so far`);
  }
  await delay(CALM_MS);
  over.abort();
  await Promise.all(callers);
  const calls = asked.map((call) => ({ ...call, effects: world.effects.get(call.key) ?? 0 }));
  const history = { calls, strikes };
  return { history, violations: checkSilence(history), unaskedEnds: world.unaskedEnds };
}

async function strike(world: World, random: Random, options: SilenceOptions): Promise<Strike> {
  const { service, link } = random.pick(world.struck);
  const kind = random.pick(["freeze", "cut"] as const);
  const fromMs = performance.now();
  link.fallSilent({ answersPings: options.slowBroker });
  if (kind === "freeze") service.freeze();
  await delay(options.leastMs + random.next() * (options.mostMs - options.leastMs));
  link.restore();
  if (kind === "freeze") service.thaw();
  return { kind, instance: service.instance, fromMs, toMs: performance.now() };
}

async function callAlways(
  world: World,
  caller: string,
  signal: AbortSignal,
  asked: Omit<ClientCall, "effects">[],
): Promise<void> {
  for (let count = 0; !signal.aborted; count += 1) {
    const tool: ToolName = count % 2 === 0 ? "pure" : "at_most_once";
    const key = `${caller}-${count}`;
    const fromMs = performance.now();
    const told = await callOnce(world, tool, key);
    asked.push({ key, tool, fromMs, toMs: performance.now(), told });
    await delay(20);
  }
}

async function callOnce({ tools, sessionId }: World, tool: ToolName, key: string): Promise<ClientCall["told"]> {
  try {
    const request = { callId: key, sessionId, name: `@effects/${tool}`, argumentsJson: JSON.stringify({ key }) };
    for await (const { event } of tools.callTool(request, { timeoutMs: CLIENT_TIMEOUT_MS })) {
      if (event.case !== "result") continue;
      const { isError, outputJson } = event.value;
      return isError ? { kind: "fault", text: outputJson } : { kind: "result", key: JSON.parse(outputJson).key };
    }
    return { kind: "fault", text: "the stream ended without a result" };
  } catch (error) {
    return { kind: "fault", text: messageFromUnknown(error) };
  }
}
