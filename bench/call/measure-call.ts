import type { Latencies } from "../measuring/latencies.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { measureRounds, type Rounds } from "../measuring/rounds.ts";
import type { Order, Way } from "./setting.ts";
import { type CallWorld, openCallWorld } from "./world.ts";

/*
 * How long does a call of a tool take, from who calls it to the tool and back, and what does it cost the processors? Each
 * service, who calls, the MCP server and the nats-server are processes of their own.
 *
 *   internal   over the bus, a tool that the router answers by itself      beside a bare request on the same bus
 *   mcp_bus    over the bus, a pure tool of an MCP server behind stdio     beside the SDK's client at the same server
 *   mcp_http   the same through the gateway, over HTTP/2 by a client that does nothing else
 *   unary_http a list of agents through the gateway                        beside connect-node that serves the same message
 *
 * Each way is used for a while first, with many calls at a time, since a program that has just begun is not what runs for days.
 * Each round then measures every way once, in alternating order; the medians of the rounds are told. `call_cpu_us` is what an MCP
 * call through the gateway uses of the processors, over all these processes.
 */

const bench = "call";
const AT_WORK = 16;

interface Measured extends Latencies {
  cpuUs: number;
}

const ORDERS = {
  raw: ["raw", 1],
  internal: ["internal", 1],
  sdk: ["sdk", 1],
  mcpBus: ["mcpBus", 1],
  mcpHttp: ["mcpHttp", 1],
  mcpHttp16: ["mcpHttp", AT_WORK],
  unaryHttp16: ["unaryHttp", AT_WORK],
  unaryBaseline16: ["unaryBaseline", AT_WORK],
} as const satisfies Record<string, readonly [Way, number]>;

type Name = keyof typeof ORDERS;

export async function* measureCall(options: Rounds): AsyncIterable<BenchResult> {
  const series = await runRounds(options);
  const latencies = (name: Name) => series[name].map(({ p50Ms }) => p50Ms);
  const rates = (name: Name) => series[name].map(({ perSecond }) => perSecond);
  const ms = (metric: string) => ({ bench, metric, unit: "ms" });
  const perSecond = (metric: string) => ({ bench, metric, unit: "1/s" });
  yield comparedResult(ms("internal_bus_p50_ms"), latencies("internal"), latencies("raw"));
  yield comparedResult(ms("mcp_bus_p50_ms"), latencies("mcpBus"), latencies("sdk"));
  yield comparedResult(ms("mcp_http_p50_ms"), latencies("mcpHttp"));
  yield comparedResult(perSecond("mcp_http_per_s_16"), rates("mcpHttp16"));
  yield comparedResult(perSecond("unary_http_per_s_16"), rates("unaryHttp16"), rates("unaryBaseline16"));
  const cpuUs = series.mcpHttp.map((one) => one.cpuUs / one.calls);
  yield comparedResult({ bench, metric: "call_cpu_us", unit: "µs" }, cpuUs);
}

async function runRounds(options: Rounds): Promise<Record<Name, Measured[]>> {
  const { rounds, roundMs, onProgress } = options;
  await using world = await openCallWorld();
  const names = Object.keys(ORDERS) as Name[];
  onProgress("warming up");
  for (const name of names)
    await world.measure({ way: ORDERS[name][0], inFlight: AT_WORK, durationMs: rounds * roundMs });
  return await measureRounds(names, options, (name) => measured(world, orderOf(name, roundMs)));
}

function orderOf(name: Name, durationMs: number): Order {
  const [way, inFlight] = ORDERS[name];
  return { way, inFlight, durationMs };
}

async function measured(world: CallWorld, order: Order): Promise<Measured> {
  const before = world.cpuUs();
  const report = await world.measure(order);
  return { ...report, cpuUs: world.cpuUs() - before };
}
