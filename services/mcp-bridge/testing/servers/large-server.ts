import { once } from "node:events";
import { createGzip } from "node:zlib";
import { type HttpServer, listen } from "./http-server.ts";

const FORMS = ["json", "gzip", "events", "line", "values", "value-events", "hidden-events", "many-events"];
const CHUNK = Buffer.alloc(1_024 * 1_024, "x");
const VALUES = Buffer.from('{},{"a":1},'.repeat(95_000));

/**
 * Answers calls of `json` and `events` with results of `megabytes`, packed where that is `gzip`, and counts what was taken of all; those
 * of `values`, `value-events` and `hidden-events` with as much of small values, of which a comment with a quote makes none a text; and
 * those of `many-events` with many small messages before a small result.
 */
export async function openLargeServer(megabytes: number): Promise<HttpServer & { readonly writtenMegabytes: number }> {
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "large", version: "1" },
    },
    "tools/list": {
      tools: FORMS.map((name) => ({ name, inputSchema: { type: "object" } })),
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
    const isEvents = form === "line" || form.endsWith("events");
    const isValues = ["values", "value-events", "hidden-events"].includes(form);
    response.writeHead(200, {
      "content-type": isEvents ? "text/event-stream" : "application/json",
      ...(form === "gzip" && { "content-encoding": "gzip" }),
    });
    const packed = createGzip({ level: 1 });
    const out = form === "gzip" ? packed : response;
    if (form === "gzip") packed.pipe(response);
    if (form === "many-events") {
      const level = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[${"{},".repeat(5_000)}0]}}`;
      for (let sent = 0; sent < 600; sent += 1) response.write(`data: ${level}\n\n`);
      const result = JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "all" }] } });
      return response.end(`data: ${result}\n\n`);
    }
    if (form === "hidden-events") out.write(': "\n');
    out.write(isEvents ? 'data: {"jsonrpc":"2.0","id":' : '{"jsonrpc":"2.0","id":');
    out.write(`${id},"result":{"content":[${isValues ? '],"structuredContent":{"all":[' : '{"type":"text","text":"'}`);
    const closed = once(response, "close");
    for (let written = 0; written < megabytes && !response.destroyed; written++) {
      writtenMegabytes += 1;
      if (!out.write(isValues ? VALUES : CHUNK)) await Promise.race([once(out, "drain"), closed]);
      if (form === "events") out.write("\ndata: ");
    }
    out.end(isValues ? "{}]}}}\n\n" : '"}]}}\n\n');
  });
  return {
    ...server,
    get writtenMegabytes() {
      return writtenMegabytes;
    },
  };
}
