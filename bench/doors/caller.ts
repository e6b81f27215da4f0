/** An MCP client at each door: says how long a call or a list took, and how many there were. */
import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { argumentOf } from "../call/setting.ts";
import { quantileOf } from "../loop/figures/quantile.ts";
import { type Order, type Report, SLOW_TEXT, SLOW_TOOL, TOOL, type Way } from "./setting.ts";

const urls = argumentOf<Record<Way, string>>();
const text = "a line of text that comes back";
/** Calls that wait for the slow server at any time. */
const SLOW_CALLS = 4;
const MANY = 500;

type Does = Record<Order["does"] | "wait", () => Promise<void>>;

/** The tools of that door, whatever their names there are. */
async function openClient(url: string): Promise<Does> {
  const client = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const { tools } = await client.listTools();
  const named = (end: string) => tools.find((tool) => tool.name.endsWith(end))?.name ?? "";
  const answerOf = async (name: string, given: Record<string, unknown>) => {
    const { content } = (await client.callTool({ name, arguments: given })) as CallToolResult;
    return content[0]?.type === "text" ? content[0].text : content;
  };
  return {
    async call() {
      const answer = await answerOf(named(TOOL), { text });
      if (answer !== text) throw new Error(`${url} answered with ${JSON.stringify(answer)}`);
    },
    async list() {
      const { tools: listed } = await client.listTools(undefined, { cacheMode: "bypass" });
      if (listed.length < MANY) throw new Error(`${url} listed ${listed.length} tools`);
    },
    async wait() {
      const answer = await answerOf(named(SLOW_TOOL), {});
      if (answer !== SLOW_TEXT) throw new Error(`${url} answered for the slow server with ${JSON.stringify(answer)}`);
    },
  };
}

const opened = Object.entries(urls).map(async ([way, url]) => [way, await openClient(url)]);
const ways = Object.fromEntries(await Promise.all(opened)) as Record<Way, Does>;

async function measure({ way, does, inFlight, durationMs }: Order): Promise<Report> {
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const isGoingOn = () => performance.now() < startedAt + durationMs;
  const worker = async () => {
    for (let before = performance.now(); before < startedAt + durationMs; ) {
      await ways[way][does]();
      const after = performance.now();
      latenciesMs.push(after - before);
      before = after;
    }
  };
  const waiter = async () => {
    while (isGoingOn()) await ways[way].wait();
  };
  const waiters = way === "beside" ? Array.from({ length: SLOW_CALLS }, waiter) : [];
  await Promise.all(Array.from({ length: inFlight }, worker));
  const perSecond = (latenciesMs.length * 1_000) / (performance.now() - startedAt);
  await Promise.all(waiters);
  return { p50Ms: quantileOf(latenciesMs, 0.5), p99Ms: quantileOf(latenciesMs, 0.99), perSecond };
}

process.on("message", (order: Order) => {
  measure(order).then(
    (report) => process.send?.({ kind: "report", ...report }),
    (error: unknown) => process.send?.({ kind: "fault", text: `${order.way}: ${error}` }),
  );
});
process.on("disconnect", () => process.exit());
process.send?.({ kind: "ready" });
