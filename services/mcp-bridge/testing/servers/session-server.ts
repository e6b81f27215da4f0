import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { type HttpServer, listen } from "./http-server.ts";

interface Session {
  server: Server;
  transport: StreamableHTTPServerTransport;
}

/** What a server of the independent SDK 1.x answers and has seen: one server object and one transport a session. */
class SdkSessions {
  /** The ids of requests that were canceled. */
  readonly canceled: unknown[] = [];
  executed = 0;
  /** How often the stream of events was asked for. */
  eventRequests = 0;
  headers: IncomingMessage["headers"] = {};
  readonly #names = ["echo", "wait", "report"];
  readonly #open = new Map<string, Session>();
  readonly #eventStreams = new Set<ServerResponse>();
  #lostStatus = 404;

  get count(): number {
    return this.#open.size;
  }

  /** Forgets all sessions; how it says so is up to it. */
  forget(status: 400 | 404 = 404): void {
    this.#lostStatus = status;
    this.#open.clear();
  }

  async addTool(name: string): Promise<void> {
    this.#names.push(name);
    await Promise.all([...this.#open.values()].map(({ server }) => server.sendToolListChanged()));
  }

  /** Ends the streams of events politely. */
  endEventStreams(): void {
    for (const stream of this.#eventStreams) stream.end();
    this.#eventStreams.clear();
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.headers = request.headers;
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? this.#open.get(id) : undefined;
    if (id !== undefined && !known) {
      const error = { code: -32_001, message: "Session not found" };
      response.writeHead(this.#lostStatus, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
      return;
    }
    if (request.method === "GET") {
      this.eventRequests += 1;
      this.#eventStreams.add(response);
    }
    await (known?.transport ?? (await this.#openSession())).handleRequest(request, response);
  }

  async #openSession(): Promise<StreamableHTTPServerTransport> {
    const server = this.#createServer();
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void this.#open.set(id, { server, transport }),
      onsessionclosed: (id) => void this.#open.delete(id),
    });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    return transport;
  }

  #createServer(): Server {
    const capabilities = { tools: { listChanged: true }, logging: {} };
    const server = new Server({ name: "old", version: "1" }, { capabilities });
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: this.#names.map((name) => ({ name, inputSchema: { type: "object" as const } })),
    }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, requestId }) => {
      this.executed += 1;
      const progressToken = params._meta?.progressToken;
      if (params.name === "report" && progressToken !== undefined) {
        const progress = { progressToken, progress: 1, total: 2 };
        await sendNotification({ method: "notifications/progress", params: progress });
      }
      if (params.name === "report") {
        await sendNotification({ method: "notifications/message", params: { level: "info", data: "reporting" } });
      }
      if (params.name === "wait") {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        this.canceled.push(requestId);
      }
      return { content: [{ type: "text" as const, text: String(params.arguments?.text ?? params.name) }] };
    });
    return server;
  }
}

export interface SessionServer extends HttpServer {
  readonly sessions: SdkSessions;
}

/** Streamable HTTP with sessions, as the independent SDK 1.x serves it. */
export async function openSessionServer(options: { port?: number } = {}): Promise<SessionServer> {
  const sessions = new SdkSessions();
  const server = await listen((request, response) => void sessions.answer(request, response), options.port);
  return { ...server, sessions };
}
