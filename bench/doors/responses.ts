/*
 * What a client of responses waits for, beyond the model, and how many of its streams are held. The model answers as planned, its
 * first token at once: all that passes until a client has it is ours.
 *
 * `responses_overhead_ms`: from the request to the first delta of the text, one after another.
 * `responses_delta_cpu_us`: CPU time of the gateway, by token, of 100 streams at fifty tokens a second (loop/figures/speaking.ts).
 * `responses_streams_held`: how many of them one core holds, which gateway, orchestrator and nats-server are bound to together. A
 *     client is told a text in pieces: of some two tokens each, and of some seven once it is 4 KiB long.
 */

import { quantileOf } from "../loop/figures/quantile.ts";
import { bindToCore, deltaMs, mostHeld, type Speaking, speak } from "../loop/figures/speaking.ts";
import { type Plan, quiet } from "../loop/plan.ts";
import { loopServices, openWorld, type World } from "../loop/world.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import type { Rounds } from "../measuring/rounds.ts";

const bench = "doors";
/** Runs that are not looked at: code and caches are cold. */
const WARMING = 20;

export interface ResponsesOptions extends Rounds {
  /** How many streams are tried, in growing counts. */
  readonly streams?: readonly number[] | undefined;
}

export async function* measureResponses(options: ResponsesOptions): AsyncIterable<BenchResult> {
  await using world = await openWorld({ services: ["gateway", ...loopServices] });
  options.onProgress("responses: to the first delta");
  yield comparedResult({ bench, metric: "responses_overhead_ms", unit: "ms" }, await overheads(world, options));
  const gateway = world.suite.services.find(({ service }) => service === "gateway")?.pid ?? 0;
  const speaking: Speaking = { pids: [gateway], listen: (plan, onTokens) => listen(world, plan, onTokens) };
  options.onProgress("responses: streams");
  const { heard, cpuMicroseconds } = await speak(speaking, options.streams?.[0] ?? 100);
  yield comparedResult({ bench, metric: "responses_delta_cpu_us", unit: "us" }, [cpuMicroseconds / heard]);
  const pids = [world.server.pid, gateway, ...world.orchestrators.map(({ pid }) => pid)];
  await Promise.all(pids.map((pid) => bindToCore(pid, "0")));
  const held = await mostHeld(speaking, options.streams);
  yield comparedResult({ bench, metric: "responses_streams_held", unit: "streams" }, [held]);
}

/** The median of each round. */
async function overheads(world: World, { rounds, roundMs }: Rounds): Promise<number[]> {
  for (let count = 0; count < WARMING; count += 1) await timeToFirstDelta(world);
  const medians: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const times: number[] = [];
    for (const until = performance.now() + roundMs; performance.now() < until; )
      times.push(await timeToFirstDelta(world));
    medians.push(quantileOf(times, 0.5));
  }
  return medians;
}

async function timeToFirstDelta(world: World): Promise<number> {
  const startedAt = performance.now();
  let firstAt: number | undefined;
  await speakTo(world, { ...quiet, id: "", turns: 0, deltas: 3, deltaMs }, () => {
    firstAt ??= performance.now();
  });
  if (firstAt === undefined) throw new Error("a response had no delta");
  return firstAt - startedAt;
}

/** Deltas are cut by the length of the text, and not where a token ends. */
async function listen(world: World, plan: Plan, onTokens: (text: string) => void): Promise<void> {
  let text = "";
  await speakTo(world, plan, (delta) => {
    text += delta;
    const end = text.lastIndexOf(" ") + 1;
    if (end > 0) onTokens(text.slice(0, end));
    text = text.slice(end);
  });
}

const DELTA = "event: response.output_text.delta\ndata: ";
const END = "event: response.completed\n";

/** Creates a response, as a client does, and tells the deltas of its text. */
async function speakTo({ suite }: World, plan: Plan, onDelta: (delta: string) => void): Promise<void> {
  const response = await fetch(`${suite.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${suite.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "bench", input: JSON.stringify(plan), stream: true }),
  });
  if (!response.ok || response.body === null) throw new Error(await response.text());
  let rest = "";
  let hasEnded = false;
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      if (event.startsWith(DELTA)) onDelta(JSON.parse(event.slice(DELTA.length)).delta);
      hasEnded ||= event.startsWith(END);
    }
  }
  if (!hasEnded) throw new Error("a stream of a response ended before the response");
}
