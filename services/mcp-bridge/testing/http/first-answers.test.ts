// Servers over HTTP that answer `server/discover`, of which they have never heard, in ways of their own.

import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { callThrough, openConnection } from "../connection.ts";
import { type HttpServer, listen } from "../servers/http-server.ts";
import { openSseServer } from "../servers/sse-server.ts";

const noSignal = new AbortController().signal;

type Answer = (response: ServerResponse) => void;

const answers: Record<string, Answer> = {
  "HTTP 500": (response) => response.writeHead(500).end("Internal Server Error"),
  "HTTP 202": (response) => response.writeHead(202).end(),
  "an empty 200": (response) => response.writeHead(200).end(),
  "an empty 200 of JSON": (response) => response.writeHead(200, { "content-type": "application/json" }).end(),
  "a page": (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>hello</html>"),
  silence: () => {},
};

/** Revision 2025-03-26 by hand: it answers what it does not know as it likes, and `initialize` as it should. */
async function openOldServer(answer: Answer, isOld = true): Promise<HttpServer & { asked: string[] }> {
  const asked: string[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== "POST") return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(await text(request));
    asked.push(method);
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: "2025-03-26",
        capabilities: { tools: {} },
        serverInfo: { name: "old", version: "1" },
      },
      "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: params?.arguments?.text }] },
    };
    const result = isOld ? results[method] : undefined;
    if (id === undefined) return response.writeHead(202).end();
    if (result === undefined) return answer(response);
    const head = { "content-type": "application/json" };
    return response.writeHead(200, head).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  };
  return Object.assign(await listen(serve), { asked });
}

test.for(Object.keys(answers))(
  "ORCH-6 a server that answers server/discover with %s is asked to initialize, and is an older one if it does",
  async (name) => {
    await using server = await openOldServer(answers[name] as Answer);
    await using connection = openConnection({
      ...{ name: "old", url: server.url },
      ...(name === "silence" && { startupTimeout: durationFromMs(2_500) }),
    });
    await connection.settled(noSignal);
    expect(connection.offer().status).toMatchObject({ available: true, reason: "" });
    expect(connection.status().protocolVersion).toBe("2025-03-26");
    expect((await callThrough(connection, "echo", { text: "hello" })).output).toBe("hello");
  },
);

test.for([404, 405, 429, 500, 503])("ORCH-6 a server that answers all with HTTP %i is told with it", async (status) => {
  await using server = await openOldServer((response) => response.writeHead(status).end("no such thing"), false);
  await using connection = openConnection({ name: "none", url: server.url });
  await connection.settled(noSignal);
  expect(connection.offer().status).toMatchObject({
    available: false,
    reason: expect.stringContaining(`HTTP ${status}`),
  });
});

test("ORCH-6 a page at the address of a server is told as such", async () => {
  await using server = await openOldServer(answers["a page"] as Answer, false);
  await using connection = openConnection({ name: "page", url: server.url });
  await connection.settled(noSignal);
  expect(connection.offer().status).toMatchObject({ available: false, reason: expect.stringContaining("text/html") });
});

test("ORCH-6 a server that speaks only the SSE of 2024-11-05 is recognised at a URL that names no transport", async () => {
  await using server = await openSseServer();
  await using connection = openConnection({ name: "events", url: server.url });
  await connection.settled(noSignal);
  expect(connection.offer().status).toMatchObject({ available: true, reason: "" });
  expect((await callThrough(connection, "echo", { text: "hello" })).output).toBe("hello");
});
