import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Client, ConnectError } from "@connectrpc/connect";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { clientFor } from "../../../../services/clients.ts";
import { createRandom } from "../../random.ts";
import type { PoolWorld } from "../world.ts";
import { judge, type Outcome, type Seen, type Violation } from "./judge.ts";
import { type Act, actFromRandom, eachAct } from "./mix.ts";

export interface StormOptions {
  readonly seed: number;
  readonly clients: number;
  /** Of each client. */
  readonly calls: number;
  readonly onProgress: (line: string) => void;
}

export interface StormResult {
  readonly calls: number;
  /** How many calls ended in each way: `result`, `error`, or the reason of a failure. */
  readonly endings: ReadonlyMap<string, number>;
  /** Calls after which their worker was dead. */
  readonly fatal: number;
  readonly violations: readonly Violation[];
  readonly medianMs: number;
  readonly slowestMs: number;
  readonly durationMs: number;
}

/** Time enough for a call that others keep from its worker. */
const DEADLINE_MS = 60_000;

/** Clients with a connection of their own each, who call the functions of one file. */
export async function runStorm(world: PoolWorld, options: StormOptions): Promise<StormResult> {
  const { seed, clients, calls, onProgress } = options;
  const startedAt = performance.now();
  const seen: Seen[] = [];
  const tookMs: number[] = [];
  const total = clients * calls;
  async function runClient(number: number): Promise<void> {
    const random = createRandom(seed * 1_000 + number);
    const client = clientFor(await world.bus.connect(), ToolProviderService, { process: "worker-pool" });
    const first = random.shuffled(eachAct(random)).slice(0, calls);
    for (let index = 0; index < calls; index += 1) {
      const act = (number === 0 ? first[index] : undefined) ?? actFromRandom(random);
      const nonce = `n${(number * 1_000_000 + index).toString(16).padStart(12, "0")}x`;
      const begunAt = performance.now();
      seen.push(await call(client, act, nonce));
      if (act.tool === "plain") tookMs.push(performance.now() - begunAt);
      if (seen.length % 1_000 === 0) onProgress(`storm: ${seen.length} of ${total} calls`);
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, number) => runClient(number)));
  const begun = await timesBegun(world);
  const sorted = tookMs.sort((a, b) => a - b);
  return {
    calls: seen.length,
    endings: new Map([...Map.groupBy(seen, endingOf)].map(([ending, of]) => [ending, of.length])),
    fatal: seen.filter(({ act, nonce }) => act.ending.kind.endsWith("crash") && begun.has(nonce)).length,
    violations: judge(seen, begun),
    medianMs: sorted[Math.floor(sorted.length / 2)] ?? 0,
    slowestMs: sorted.at(-1) ?? 0,
    durationMs: performance.now() - startedAt,
  };
}

function endingOf({ outcome }: Seen): string {
  return outcome.kind === "failure" ? outcome.reason : outcome.kind;
}

async function call(client: Client<typeof ToolProviderService>, act: Act, nonce: string): Promise<Seen> {
  const shown: string[] = [];
  const { tool, args, deadlineMs = DEADLINE_MS, leavesAfterMs } = act;
  const request = {
    callId: `storm-${nonce.slice(1, -1)}`,
    source: { name: "tool" },
    tool,
    argumentsJson: JSON.stringify({ nonce, ...args }),
    deadline: timestampFromMs(Date.now() + deadlineMs),
  };
  const leaving = new AbortController();
  const timer = leavesAfterMs === undefined ? undefined : setTimeout(() => leaving.abort(), leavesAfterMs);
  try {
    const results: Outcome[] = [];
    for await (const { event } of client.executeTool(request, { signal: leaving.signal })) {
      if (event.case === "log") shown.push(event.value.message, event.value.fieldsJson);
      if (event.case === "progress") shown.push(event.value.message);
      if (event.case === "result") results.push(outcomeFrom(event.value));
      if (event.case === "result") shown.push(event.value.outputJson);
    }
    const [outcome = { kind: "failure", reason: "no result", message: "" }] = results;
    return { nonce, act, shown, outcome: results.length > 1 ? severalResults : outcome };
  } catch (error) {
    const { reason, message } = failureFromConnectError(ConnectError.from(error));
    return { nonce, act, shown: [...shown, message], outcome: { kind: "failure", reason, message } };
  } finally {
    clearTimeout(timer);
  }
}

const severalResults: Outcome = { kind: "failure", reason: "several results", message: "" };

function outcomeFrom({ outputJson, isError }: { outputJson: string; isError: boolean }): Outcome {
  const value: unknown = JSON.parse(outputJson);
  if (!isError) return { kind: "result", value };
  return { kind: "error", text: (value as { error: string }).error };
}

async function timesBegun({ directory }: PoolWorld): Promise<Map<string, number>> {
  const lines = (await readFile(join(directory, "begun"), "utf8")).trim().split("\n");
  return new Map([...Map.groupBy(lines, (nonce) => nonce)].map(([nonce, times]) => [nonce, times.length]));
}
