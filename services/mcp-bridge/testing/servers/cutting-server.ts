import { type HttpServer, listen } from "./http-server.ts";

interface CuttingServer extends HttpServer {
  readonly cut: number;
  /** How often a stream was asked for again. */
  readonly resumed: number;
}

/**
 * Answers everything but calls, whose streams it ends without an answer; by this event, they can be asked for again, and then end
 * in the same way, or with the answer.
 */
export async function openCuttingServer({ event = "", isAnsweredAgain = false } = {}): Promise<CuttingServer> {
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "cutting", version: "1" },
    },
    "tools/list": { tools: [{ name: "cut", inputSchema: { type: "object" } }] },
  };
  const seen = { cut: 0, resumed: 0 };
  let asked: number | undefined;
  const server = await listen(async (request, response) => {
    if (request.headers["last-event-id"] !== undefined) {
      seen.resumed += 1;
      const result = { content: [{ type: "text", text: "after all" }] };
      const answer = `data: ${JSON.stringify({ jsonrpc: "2.0", id: asked, result })}\n\n`;
      response.writeHead(200, { "content-type": "text/event-stream" });
      return response.end(isAnsweredAgain ? answer : event);
    }
    if (request.method !== "POST") return response.writeHead(405).end();
    const { id, method }: { id?: number; method: string } = JSON.parse(
      Buffer.concat(await Array.fromAsync(request)).toString(),
    );
    if (id === undefined) return response.writeHead(202).end();
    if (method === "tools/call") {
      seen.cut += 1;
      asked = id;
      response.writeHead(200, { "content-type": "text/event-stream" });
      return response.end(event || ": nothing more\n\n");
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
    get resumed() {
      return seen.resumed;
    },
  };
}
