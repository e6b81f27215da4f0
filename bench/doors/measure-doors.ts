import { fileURLToPath } from "node:url";
import { openChildProcess } from "#runtime/lifecycle/child-process.ts";
import { until } from "#runtime/time/until.ts";
import { freePort } from "../../examples/free-port.ts";
import { openBenchSuite } from "../measuring/bench-suite.ts";
import { openPeer, type Peer } from "../measuring/peer.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { AGENT, type Order, type Report, SOURCE, type Way } from "./setting.ts";

/*
 * How long does an MCP client's call take through the gateway's door, beside the proxy that people take else? Both stand in front of the
 * same server on stdio, and the SDK's own client calls both. The proxy keeps nothing of a call; through the door it is of a session,
 * under its agent's policy, and recorded where it has to be. All of them are processes of their own.
 *
 * Each way is used for a while first. Each round then measures every way once, in alternating order; the medians are told.
 */

const bench = "doors";
const AT_WORK = 16;
const server = [process.execPath, fileURLToPath(new URL("../call/mcp-server.ts", import.meta.url))] as const;

export interface DoorsOptions {
  rounds: number;
  roundMs: number;
  onProgress: (message: string) => void;
}

export async function* measureDoors(options: DoorsOptions): AsyncIterable<BenchResult> {
  await using stack = new AsyncDisposableStack();
  const [command, ...args] = server;
  const suite = await openBenchSuite(stack, {
    services: ["gateway", "tool-router", "mcp-bridge", "spaces"],
    agent: { name: AGENT, tools: { use: [`@${SOURCE}/echo`] }, mcp: { servers: [{ name: SOURCE, command, args }] } },
  });
  const urls = { door: `${suite.gatewayUrl}/mcp/${AGENT}`, proxy: await openProxy(stack) };
  const caller = await openPeer<Report>(stack, new URL("caller.ts", import.meta.url), { args: [JSON.stringify(urls)] });
  const series = await runRounds(caller, options);
  const p50s = (way: Way) => series[way].alone.map(({ p50Ms }) => p50Ms);
  const rates = (way: Way) => series[way].many.map(({ perSecond }) => perSecond);
  yield comparedResult({ bench, metric: "mcp_p50_ms_1", unit: "ms" }, p50s("door"), p50s("proxy"));
  yield comparedResult({ bench, metric: `mcp_per_s_${AT_WORK}`, unit: "1/s" }, rates("door"), rates("proxy"));
}

async function openProxy(stack: AsyncDisposableStack): Promise<string> {
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

type Reports = Record<"alone" | "many", Report[]>;

async function runRounds(
  caller: Peer<Report>,
  { rounds, roundMs, onProgress }: DoorsOptions,
): Promise<Record<Way, Reports>> {
  const ways: readonly Way[] = ["door", "proxy"];
  const series: Record<Way, Reports> = { door: { alone: [], many: [] }, proxy: { alone: [], many: [] } };
  onProgress("warming up");
  for (const way of ways) await measured(caller, { way, inFlight: AT_WORK, durationMs: rounds * roundMs });
  for (let round = 0; round < rounds; round += 1) {
    onProgress(`round ${round + 1} of ${rounds}`);
    for (const way of round % 2 === 0 ? ways : ways.toReversed()) {
      series[way].alone.push(await measured(caller, { way, inFlight: 1, durationMs: roundMs }));
      series[way].many.push(await measured(caller, { way, inFlight: AT_WORK, durationMs: roundMs }));
    }
  }
  return series;
}

function measured(caller: Peer<Report>, order: Order): Promise<Report> {
  const answer = caller.answer();
  caller.child.send(order);
  return answer;
}
