import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { createMcpHandler, fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { type HttpServer, listen } from "./http-server.ts";

/** A server that speaks 2026-07-28 and nothing else. */
export async function openModernServer(create = createServer): Promise<HttpServer & { addTool(name: string): void }> {
  const names = new Set(["echo"]);
  const handler = createMcpHandler(() => create(names), { legacy: "reject" });

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const response = await handler.fetch(requestFrom(incoming));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]).pipe(outgoing);
    else outgoing.end();
  }

  const server = await listen((incoming, outgoing) => {
    answer(incoming, outgoing).catch((error: Error) => outgoing.destroy(error));
  });
  return {
    ...server,
    addTool(name) {
      names.add(name);
      handler.notify.toolsChanged();
    },
    async [Symbol.asyncDispose]() {
      await handler.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

function createServer(names: Iterable<string>): McpServer {
  const capabilities = { tools: { listChanged: true } };
  const inputSchema = fromJsonSchema<{ text?: string }>({ type: "object" });
  const server = new McpServer({ name: "modern", version: "1" }, { capabilities });
  for (const name of names) {
    server.registerTool(name, { inputSchema }, async (given) => ({
      content: [{ type: "text", text: given.text ?? name }],
    }));
  }
  return server;
}

function requestFrom(incoming: IncomingMessage): Request {
  const hasBody = incoming.method === "POST";
  const gone = new AbortController();
  incoming.once("close", () => incoming.complete || gone.abort());
  return new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method ?? "GET",
    headers: Object.entries(incoming.headers).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as [string, string]] : [],
    ),
    signal: gone.signal,
    ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" }),
  });
}
