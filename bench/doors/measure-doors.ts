import { fileURLToPath } from "node:url";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { until } from "#runtime/time/until.ts";
import { freePort } from "../../examples/free-port.ts";
import { openBenchSuite } from "../measuring/bench-suite.ts";
import type { Latencies } from "../measuring/latencies.ts";
import { openPeer, type Peer } from "../measuring/peer.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { measureRounds, type Rounds } from "../measuring/rounds.ts";
import { measureResponses, type ResponsesOptions } from "./responses.ts";
import { AGENT, type Order, SLOW_TOOL, SOURCE, type Way } from "./setting.ts";

/*
 * How long does an MCP client's call take through the gateway's door, beside the proxy that people take else? Both stand in front of the
 * same server on stdio, and the SDK's own client calls both. The proxy keeps nothing of a call; through the door it is of a session,
 * under its agent's policy, and recorded where it has to be. All of them are processes of their own. Likewise, how long does a list of 500
 * tools take?
 *
 * And what does a dead server cost those who call another one of the same agent, and one that is slow, while it is waited for?
 *
 * Each way is used for a while first. Each round then measures every way once, in alternating order; the medians are told.
 */

const bench = "doors";
const AT_WORK = 16;
const programOf = (path: string) => [process.execPath, fileURLToPath(new URL(path, import.meta.url))] as const;
const echo = programOf("../call/mcp-server.ts");
const many = programOf("many-tools.ts");
const slow = programOf("slow-server.ts");

export async function* measureDoors(options: ResponsesOptions): AsyncIterable<BenchResult> {
  yield* measureMcpDoor(options);
  yield* measureResponses(options);
}

export async function* measureMcpDoor(options: Rounds): AsyncIterable<BenchResult> {
  await using stack = new AsyncDisposableStack();
  const echoing = serverOf(SOURCE, echo);
  const dead = { name: "dead", url: `http://127.0.0.1:${await freePort()}` };
  const suite = await openBenchSuite(stack, {
    services: ["gateway", "tool-router", "mcp-bridge", "spaces"],
    agent: agentOf(AGENT, [echoing]),
    others: [agentOf("beside", [echoing, dead, serverOf(SLOW_TOOL, slow)]), agentOf("many", [serverOf("many", many)])],
  });
  const at = (agent: string) => `${suite.gatewayUrl}/mcp/${agent}`;
  const doors = { door: at(AGENT), beside: at("beside"), many: at("many") };
  const proxies = { proxy: await openProxy(stack, echo), manyProxy: await openProxy(stack, many) };
  const urls: Record<Way, string> = { ...doors, ...proxies };
  const caller = await openPeer<Latencies>(stack, new URL("caller.ts", import.meta.url), { argument: urls });
  const series = await runRounds(caller, options);
  const compared = (metric: string, [one, other]: readonly [Series, Series], figure: keyof Latencies) => {
    const unit = figure === "perSecond" ? "1/s" : "ms";
    const figures = (name: Series) => series[name].map((report) => report[figure]);
    return comparedResult({ bench, metric, unit }, figures(one), figures(other));
  };
  yield compared("mcp_p50_ms_1", ["door", "proxy"], "p50Ms");
  yield compared(`mcp_per_s_${AT_WORK}`, ["doorAtWork", "proxyAtWork"], "perSecond");
  yield compared("mcp_list_500_ms", ["many", "manyProxy"], "p50Ms");
  const ratios = series.beside.map(({ p99Ms }, round) => p99Ms / (series.door[round]?.p99Ms ?? Number.NaN));
  yield comparedResult({ bench, metric: "mcp_dead_backend_p99_ratio", unit: "ratio" }, ratios, [1]);
}

function serverOf(name: string, [command, ...args]: readonly [string, ...string[]]) {
  return { name, command, args };
}

function agentOf(name: string, servers: readonly { name: string }[]) {
  return { name, tools: { use: servers.map((server) => `@${server.name}/*`) }, mcp: { servers } };
}

async function openProxy(stack: AsyncDisposableStack, server: readonly string[]): Promise<string> {
  const program = fileURLToPath(new URL("../../node_modules/.bin/mcp-proxy", import.meta.url));
  const port = await freePort();
  const args = [program, "--host", "127.0.0.1", "--port", `${port}`, "--", ...server];
  stack.use(await openChildProcess({ command: process.execPath, args }));
  const url = `http://127.0.0.1:${port}`;
  await until(
    () =>
      fetch(`${url}/ping`)
        .then(({ ok }) => ok)
        .catch(() => false),
    { timeoutMs: 30_000 },
  );
  return `${url}/mcp`;
}

/** What is measured of a round, by name. */
const ORDERS = {
  door: { way: "door", does: "call", inFlight: 1 },
  beside: { way: "beside", does: "call", inFlight: 1 },
  proxy: { way: "proxy", does: "call", inFlight: 1 },
  doorAtWork: { way: "door", does: "call", inFlight: AT_WORK },
  proxyAtWork: { way: "proxy", does: "call", inFlight: AT_WORK },
  many: { way: "many", does: "list", inFlight: 1 },
  manyProxy: { way: "manyProxy", does: "list", inFlight: 1 },
} as const satisfies Record<string, Omit<Order, "durationMs">>;

type Series = keyof typeof ORDERS;

async function runRounds(caller: Peer<Latencies>, options: Rounds): Promise<Record<Series, Latencies[]>> {
  const { rounds, roundMs: durationMs, onProgress } = options;
  onProgress("warming up");
  const warmUp = { does: "call", inFlight: AT_WORK, durationMs: rounds * durationMs } as const;
  for (const way of ["door", "beside", "proxy"] as const) await caller.ask({ way, ...warmUp } satisfies Order);
  const names = Object.keys(ORDERS) as Series[];
  return measureRounds(names, options, (name) => caller.ask({ ...ORDERS[name], durationMs } satisfies Order));
}
