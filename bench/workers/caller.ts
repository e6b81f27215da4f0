/** Calls each way, and says how long a call took. */
import { randomUUID } from "node:crypto";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { until } from "#runtime/time/until.ts";
import { clientFor } from "../../services/clients.ts";
import type { Login } from "../measuring/bench-suite.ts";
import { measureLatencies } from "../measuring/latencies.ts";
import { answerOrders, argumentOf, sayReady } from "../measuring/peer-process.ts";
import { openPipe } from "./pipe.ts";
import { type Order, PURE_TOOL, SESSION, SOURCE, TOOL, type Way } from "./setting.ts";

const { login, path } = argumentOf<{ login: Login; path: string }>();
const bus = await openBus({ ...login, name: "caller" });
const tools = clientFor(bus, ToolService);
const pool = clientFor(bus, ToolProviderService, { process: "worker-pool" });
const pipe = await openPipe(path);

const text = "a line of text that comes back";
const argumentsJson = JSON.stringify({ text });

interface Told {
  event: { case: string | undefined; value?: unknown };
}

async function resultOf(events: AsyncIterable<Told>): Promise<unknown> {
  const results = (await Array.fromAsync(events)).filter(({ event }) => event.case === "result");
  const [{ event } = { event: { value: undefined } }] = results;
  const { outputJson = "null", isError = true } = (event.value ?? {}) as { outputJson?: string; isError?: boolean };
  return isError ? outputJson : JSON.parse(outputJson);
}

const callTool = (tool: string) =>
  resultOf(tools.callTool({ callId: randomUUID(), sessionId: SESSION, name: `@${SOURCE}/${tool}`, argumentsJson }));

const ways: Record<Way, () => Promise<unknown>> = {
  call: () => callTool(TOOL),
  pure: () => callTool(PURE_TOOL),
  execute: () =>
    resultOf(pool.executeTool({ callId: randomUUID(), source: { name: SOURCE }, tool: TOOL, argumentsJson })),
  pipe: () => pipe.call(TOOL, { text }),
};

async function callEcho(way: Way): Promise<void> {
  const answer = await ways[way]();
  if (answer !== text) throw new Error(`${way} was answered with ${JSON.stringify(answer)}`);
}

answerOrders(({ way, ...load }: Order) => measureLatencies(() => callEcho(way), load));
// The worker is started by its first call, once the router knows it.
for (const way of ["pipe", "execute", "call", "pure"] as const) {
  await until(async () => (await ways[way]().catch(() => undefined)) === text, { timeoutMs: 60_000 });
}
sayReady();
