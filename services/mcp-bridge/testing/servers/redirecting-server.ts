import { listen } from "./http-server.ts";

type Redirects = (method: string, message: string) => string | undefined;

/** A server that sends some requests elsewhere, and answers calls with what it was sent. */
export async function openRedirectingServer(redirects: Redirects) {
  const results: Record<string, object> = {
    initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "r", version: "1" } },
    "tools/list": {
      tools: [
        { name: "fail", inputSchema: { type: "object" } },
        { name: "refuse", inputSchema: { type: "object" } },
      ],
    },
  };
  return listen(async (request, response) => {
    const text = Buffer.concat(await Array.fromAsync(request)).toString();
    const { id, method = "", params } = text === "" ? {} : JSON.parse(text);
    const location = request.url?.includes("again") ? undefined : redirects(request.method ?? "", method);
    if (location !== undefined) return response.writeHead(307, { location }).end();
    if (request.method !== "POST") return response.writeHead(405).end();
    if (id === undefined) return response.writeHead(202).end();
    const said = `no entry for ${request.headers["x-api-key"]}`;
    const ofCall =
      params?.name === "refuse"
        ? { error: { code: -32_000, message: said } }
        : { result: { isError: true, content: [{ type: "text", text: said }] } };
    const answer =
      method === "tools/call"
        ? ofCall
        : results[method]
          ? { result: results[method] }
          : { error: { code: -32_601, message: "none" } };
    return response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
}

/** Notes the keys that come to it, which are nobody's who asked it. */
export async function openForeignHost() {
  const keys: unknown[] = [];
  const server = await listen((request, response) => {
    keys.push(request.headers["x-api-key"]);
    response.writeHead(405).end();
  });
  return { ...server, keys };
}
