// A request that outlasts its gateway is answered, or ends so that its client comes back for the answer.

import { once } from "node:events";
import { expect, it } from "vitest";
import { openTestDoor, postMessage } from "../http/testing/door.ts";

const STATELESS = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "hand", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const GIVEN_UP = /was given up.*INSTANCE_STOPPING/;
const GOES_ON = /goes on: send it again, with the id that it had.*INSTANCE_STOPPING/;

it.each([
  ["of 2026-07-28 takes JSON alone", "2026-07-28", "tools/call", STATELESS, 503, GIVEN_UP],
  ["of 2026-07-28 has a stream, in which nothing was told", "2026-07-28", "tools/call", STATELESS, 200, GIVEN_UP],
  ["of 2025-11-25 has a place in a stream", "2025-11-25", "tools/call", {}, 200, /^id: call\..*\ndata: \n\n$/],
  ["of 2025-06-18 has a stream", "2025-06-18", "tools/call", {}, 200, GOES_ON],
  ["of 2025-11-25 waits for JSON", "2025-11-25", "tools/list", {}, 503, GOES_ON],
] as const)("DOOR-1 a client %s when its gateway stops", async (_, version, method, _meta, status, told) => {
  const begun = Promise.withResolvers<void>();
  const wait = async ({ signal }: { signal: AbortSignal }) => {
    begun.resolve();
    if (!signal.aborted) await once(signal, "abort");
  };
  await using door = await openTestDoor({
    tools: {
      async *callTool(_call, context) {
        yield { event: { case: "progress", value: { progress: 1 } } };
        await wait(context);
      },
      async listTools(_asked, context) {
        await wait(context);
        return {};
      },
    },
  });
  const accept = status === 503 && _meta === STATELESS && { accept: "application/json, text/event-stream;q=0" };
  const headers = { "mcp-method": method, "mcp-name": "count", ...accept };
  const params = { _meta, ...(method === "tools/call" && { name: "count", arguments: {} }) };
  const answer = postMessage(door.url, { jsonrpc: "2.0", id: 7, method, params }, { version, headers });
  await Promise.all([begun.promise, status === 200 && answer]);
  door.shutdown();
  expect((await answer).status).toBe(status);
  expect(await (await answer).text()).toMatch(told);
});
