import { once } from "node:events";
import { expect, it } from "vitest";
import { connectError } from "#runtime/failure/connect.ts";
import { serveOnHttp } from "#runtime/rpc/http/server.ts";
import { createResponsesDoor } from "../responses-door.ts";
import type { ResponsesParts } from "../responses-exchange.ts";

const chat = { messages: [{ role: "user", content: "go" }] };

it.each([
  ["/v1/responses", { input: "go" }, 503],
  ["/v1/chat/completions", chat, 503],
  ["/v1/responses", { input: "go", stream: true }, 200],
  ["/v1/chat/completions", { ...chat, stream: true }, 200],
])("LOOP-18 who waits for a response when its gateway stops is told where it is: %s %j", async (path, body, status) => {
  const watched = Promise.withResolvers<void>();
  const { takes } = createResponsesDoor({
    enter: async () => ({ principal: "alice" }),
    runs: {
      createRun: async () => ({ run: { id: "r1" } }),
      // biome-ignore lint/correctness/useYield: it has nothing to give but its error
      async *watchRun(_: unknown, { signal }: { signal: AbortSignal }) {
        watched.resolve();
        await once(signal, "abort");
        throw connectError("unavailable", "it stops", { reason: "INSTANCE_STOPPING" });
      },
    },
    maxBytes: 10_000,
  } as unknown as ResponsesParts);
  const server = await serveOnHttp({ routes() {}, fallback: takes, drainTimeoutMs: 20 });
  const asked = fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "clerk", ...body }),
  });
  await watched.promise;
  await server[Symbol.asyncDispose]();
  const answer = await asked;
  expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([status, "false"]);
  expect(await answer.text()).toMatch(/INSTANCE_STOPPING.*GET \/v1\/responses\/resp_r1/);
});
