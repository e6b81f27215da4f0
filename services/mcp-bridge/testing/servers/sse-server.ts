import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { listen } from "./http-server.ts";
import type { SocketServer } from "./socket-server.ts";

/** Revision 2024-11-05 over HTTP, as the independent SDK 1.x serves it; `foreign` wants messages at another origin. */
export async function openSseServer({ foreign }: { foreign?: string } = {}): Promise<SocketServer> {
  const open = new Map<string, SSEServerTransport>();
  const streams = new Set<ServerResponse>();
  let connections = 0;
  let headers: IncomingHttpHeaders = {};
  const server = await listen(async (request, response) => {
    const url = new URL(request.url ?? "", "http://127.0.0.1");
    if (request.method === "POST") {
      headers = request.headers;
      const transport = open.get(url.searchParams.get("sessionId") ?? "");
      if (transport === undefined) response.writeHead(405).end("Method Not Allowed");
      else await transport.handlePostMessage(request, response);
      return;
    }
    connections += 1;
    streams.add(response);
    if (foreign !== undefined) {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(`event: endpoint\ndata: ${foreign}\n\n`);
      return;
    }
    const transport = new SSEServerTransport("/messages", response);
    open.set(transport.sessionId, transport);
    const mcp = createServer();
    mcp.onerror = () => {}; // it may be cut
    await mcp.connect(transport as Parameters<typeof mcp.connect>[0]);
  });
  return {
    url: server.url,
    get headers() {
      return headers;
    },
    get connections() {
      return connections;
    },
    cut() {
      for (const stream of streams) stream.destroy();
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function createServer(): Server {
  const server = new Server({ name: "sse", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: ["echo", "wait", "big"].map((name) => ({ name, inputSchema: { type: "object" as const } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    if (params.name === "wait") await new Promise((resolve) => signal.addEventListener("abort", resolve));
    const text = params.name === "big" ? "x".repeat(2 ** 20) : String(params.arguments?.text);
    return { content: [{ type: "text" as const, text }] };
  });
  return server;
}
