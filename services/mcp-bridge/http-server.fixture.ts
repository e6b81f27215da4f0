import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createMcpHandler, fromJsonSchema, McpServer } from "@modelcontextprotocol/server";

export interface HttpServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

async function listen(
  serve: (request: IncomingMessage, response: ServerResponse) => unknown,
  port = 0,
): Promise<HttpServer> {
  const server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export interface SessionServer extends HttpServer {
  /** Forgets all sessions; how it says so is up to it. */
  forget(status?: 400 | 404): void;
  readonly sessions: number;
  /** The ids of requests that were cancelled. */
  readonly cancelled: unknown[];
  readonly executed: number;
  /** How often the stream of events was asked for. */
  readonly eventRequests: number;
  addTool(name: string): Promise<void>;
  /** Ends the streams of events politely. */
  endEventStreams(): void;
  readonly headers: IncomingMessage["headers"];
}

const inputSchema = { type: "object" };

/** A server of the independent SDK 1.x: streamable HTTP with sessions, one server object and one transport a session. */
export async function openSessionServer(options: { port?: number } = {}): Promise<SessionServer> {
  const names = ["echo", "wait", "report"];
  const sessions = new Map<string, { server: Server; transport: StreamableHTTPServerTransport }>();
  const seen = { cancelled: [] as unknown[], executed: 0, eventRequests: 0, headers: {} as IncomingMessage["headers"] };
  const eventStreams = new Set<ServerResponse>();
  let lostStatus = 404;

  function createSdkServer(): Server {
    const server = new Server(
      { name: "old", version: "1" },
      { capabilities: { tools: { listChanged: true }, logging: {} } },
    );
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: names.map((name) => ({ name, inputSchema: { type: "object" as const } })),
    }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, requestId }) => {
      seen.executed += 1;
      if (params.name === "report") {
        const progressToken = params._meta?.progressToken;
        if (progressToken !== undefined) {
          await sendNotification({
            method: "notifications/progress",
            params: { progressToken, progress: 1, total: 2 },
          });
        }
        await sendNotification({ method: "notifications/message", params: { level: "info", data: "reporting" } });
      }
      if (params.name === "wait") {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        seen.cancelled.push(requestId);
      }
      return { content: [{ type: "text" as const, text: String(params.arguments?.text ?? params.name) }] };
    });
    return server;
  }

  const server = await listen((request, response) => {
    seen.headers = request.headers;
    void serve(request, response);
  }, options.port);

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? sessions.get(id) : undefined;
    if (id !== undefined && !known) {
      response.writeHead(lostStatus, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_001, message: "Session not found" } }),
      );
      return;
    }
    if (request.method === "GET") {
      seen.eventRequests += 1;
      eventStreams.add(response);
    }
    await (known?.transport ?? (await openSession())).handleRequest(request, response);
  }

  async function openSession(): Promise<StreamableHTTPServerTransport> {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, { server: sdkServer, transport }),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    const sdkServer = createSdkServer();
    await sdkServer.connect(transport as Parameters<typeof sdkServer.connect>[0]);
    return transport;
  }

  return {
    ...server,
    forget(status = 404) {
      lostStatus = status;
      sessions.clear();
    },
    get sessions() {
      return sessions.size;
    },
    get cancelled() {
      return seen.cancelled;
    },
    get executed() {
      return seen.executed;
    },
    get eventRequests() {
      return seen.eventRequests;
    },
    get headers() {
      return seen.headers;
    },
    async addTool(name) {
      names.push(name);
      await Promise.all([...sessions.values()].map((session) => session.server.sendToolListChanged()));
    },
    endEventStreams() {
      for (const stream of eventStreams) stream.end();
      eventStreams.clear();
    },
  };
}

/** A server that speaks 2026-07-28 and nothing else. */
export async function openModernServer(): Promise<HttpServer & { addTool(name: string): void }> {
  const names = new Set(["echo"]);
  const handler = createMcpHandler(
    () => {
      const server = new McpServer(
        { name: "modern", version: "1" },
        { capabilities: { tools: { listChanged: true } } },
      );
      for (const name of names) {
        server.registerTool(name, { inputSchema: fromJsonSchema<{ text?: string }>(inputSchema) }, async (given) => ({
          content: [{ type: "text", text: given.text ?? name }],
        }));
      }
      return server;
    },
    { legacy: "reject" },
  );
  const server = await listen((incoming, outgoing) => {
    const answer = async () => {
      const response = await handler.fetch(requestFrom(incoming));
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      if (response.body) Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]).pipe(outgoing);
      else outgoing.end();
    };
    answer().catch((error: Error) => outgoing.destroy(error));
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

/** Answers everything but calls, whose streams it ends after a progress without an answer. */
export async function openCuttingServer(): Promise<HttpServer & { cut: number }> {
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "cutting", version: "1" },
    },
    "tools/list": { tools: [{ name: "cut", inputSchema }] },
  };
  const seen = { cut: 0 };
  const server = await listen(async (request, response) => {
    if (request.method !== "POST") return response.writeHead(405).end();
    const { id, method }: { id?: number; method: string } = JSON.parse(
      Buffer.concat(await Array.fromAsync(request)).toString(),
    );
    if (id === undefined) return response.writeHead(202).end();
    if (method === "tools/call") {
      seen.cut += 1;
      response.writeHead(200, { "content-type": "text/event-stream" });
      return response.end(": nothing more\n\n");
    }
    const result = results[method];
    const answer = result ? { result } : { error: { code: -32_601, message: "method not found" } };
    return response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
  return {
    ...server,
    get cut() {
      return seen.cut;
    },
  };
}
