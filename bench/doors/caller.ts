/** An MCP client at each door: says how long a call or a list took, and how many there were. */
import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type Latencies, measureLatencies } from "../measuring/latencies.ts";
import { answerOrders, argumentOf, sayReady } from "../measuring/peer-process.ts";
import { type Order, SLOW_TEXT, SLOW_TOOL, TOOL, type Way } from "./setting.ts";

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

async function measure({ way, does, ...load }: Order): Promise<Latencies> {
  const slowCalls = { ...load, inFlight: way === "beside" ? SLOW_CALLS : 0 };
  const measured = [measureLatencies(ways[way][does], load), measureLatencies(ways[way].wait, slowCalls)] as const;
  return (await Promise.all(measured))[0];
}

answerOrders(measure);
sayReady();
