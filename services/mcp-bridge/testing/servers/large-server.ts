import { once } from "node:events";
import { createGzip } from "node:zlib";
import { type HttpServer, listen } from "./http-server.ts";

const CHUNK = Buffer.alloc(1_024 * 1_024, "x");

/** Answers calls of `json` and `events` with results of `megabytes`, packed where that is `gzip`, and counts what was taken of all. */
export async function openLargeServer(megabytes: number): Promise<HttpServer & { readonly writtenMegabytes: number }> {
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "large", version: "1" },
    },
    "tools/list": {
      tools: ["json", "gzip", "events", "line"].map((name) => ({ name, inputSchema: { type: "object" } })),
    },
  };
  let writtenMegabytes = 0;
  const server = await listen(async (request, response) => {
    if (request.method !== "POST") return response.writeHead(405).end();
    const { id, method, params }: { id?: number; method: string; params?: { name: string } } = JSON.parse(
      Buffer.concat(await Array.fromAsync(request)).toString(),
    );
    if (id === undefined) return response.writeHead(202).end();
    if (method !== "tools/call") {
      const answer = results[method] ? { result: results[method] } : { error: { code: -32_601, message: "not found" } };
      response.writeHead(200, { "content-type": "application/json" });
      return response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
    }
    const form = params?.name ?? "";
    const isEvents = form === "events" || form === "line";
    response.writeHead(200, {
      "content-type": isEvents ? "text/event-stream" : "application/json",
      ...(form === "gzip" && { "content-encoding": "gzip" }),
    });
    const packed = createGzip({ level: 1 });
    const out = form === "gzip" ? packed : response;
    if (form === "gzip") packed.pipe(response);
    out.write(isEvents ? 'data: {"jsonrpc":"2.0","id":' : '{"jsonrpc":"2.0","id":');
    out.write(`${id},"result":{"content":[{"type":"text","text":"`);
    const closed = once(response, "close");
    for (let written = 0; written < megabytes && !response.destroyed; written++) {
      writtenMegabytes += 1;
      if (!out.write(CHUNK)) await Promise.race([once(out, "drain"), closed]);
      if (form === "events") out.write("\ndata: ");
    }
    out.end('"}]}}\n\n');
  });
  return {
    ...server,
    get writtenMegabytes() {
      return writtenMegabytes;
    },
  };
}
