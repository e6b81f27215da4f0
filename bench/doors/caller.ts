/** An MCP client at either door: says how long a call took, and how many there were. */
import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { argumentOf } from "../call/setting.ts";
import { medianOf } from "../measuring/result.ts";
import type { Order, Report, Way } from "./setting.ts";

const urls = argumentOf<Record<Way, string>>();
const text = "a line of text that comes back";

/** The one tool of that door, whatever its name there is. */
async function openClient(url: string): Promise<() => Promise<unknown>> {
  const client = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const { tools } = await client.listTools();
  const name = tools.find((tool) => tool.name.endsWith("echo"))?.name ?? "";
  return async () => {
    const { content } = (await client.callTool({ name, arguments: { text } })) as CallToolResult;
    return content[0]?.type === "text" ? content[0].text : content;
  };
}

const ways: Record<Way, () => Promise<unknown>> = {
  door: await openClient(urls.door),
  proxy: await openClient(urls.proxy),
};

async function measure({ way, inFlight, durationMs }: Order): Promise<Report> {
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const worker = async () => {
    for (let before = performance.now(); before < startedAt + durationMs; ) {
      const answer = await ways[way]();
      if (answer !== text) throw new Error(`${way} was answered with ${JSON.stringify(answer)}`);
      const after = performance.now();
      latenciesMs.push(after - before);
      before = after;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  const perSecond = (latenciesMs.length * 1_000) / (performance.now() - startedAt);
  return { p50Ms: medianOf(latenciesMs), perSecond };
}

process.on("message", (order: Order) => {
  measure(order).then(
    (report) => process.send?.({ kind: "report", ...report }),
    (error: unknown) => process.send?.({ kind: "fault", text: `${order.way}: ${error}` }),
  );
});
process.on("disconnect", () => process.exit());
process.send?.({ kind: "ready" });
