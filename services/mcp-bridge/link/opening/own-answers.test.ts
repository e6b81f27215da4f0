import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { callThrough, openConnection } from "../../testing/connection.ts";
import { listen } from "../../testing/servers/http-server.ts";
import { transportFromChannel } from "../../transport/channel.ts";
import type { TransportModule } from "../../transport/module.ts";

const initialized = {
  protocolVersion: "2025-06-18",
  capabilities: { tools: {} },
  serverInfo: { name: "asking", version: "1" },
};
const results: Record<string, object> = { initialize: initialized, "tools/list": { tools: [] } };

interface Message {
  id?: number;
  method?: string;
}

/** What a server says to a message of its client; undefined to one that is an answer. */
function answerTo({ id, method }: Message): object | undefined {
  if (method === undefined || id === undefined) return undefined;
  const result = results[method];
  return { jsonrpc: "2.0", id, ...(result ? { result } : { error: { code: -32_601, message: "?" } }) };
}

const ping = (id: number) => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" });

/** A server that asks for ever, once it is listed, and takes no answer. */
function askingForEver(taken: { answers: number; asked: number }): TransportModule {
  return {
    name: "asking",
    schemes: ["asking"],
    async open() {
      const said: string[] = [];
      let wake = () => {};
      const gone = Promise.withResolvers<void>();
      let isClosed = false;
      return {
        transport: transportFromChannel({
          async send(text) {
            const message: Message = JSON.parse(text);
            const answer = answerTo(message);
            if (answer) said.push(JSON.stringify(answer));
            wake();
            if (message.method !== undefined) return;
            taken.answers += 1;
            await gone.promise;
          },
          async *receive() {
            for (let isListed = false; !isClosed; ) {
              for (const text of said.splice(0)) {
                yield text;
                isListed ||= text.includes("tools");
              }
              if (isListed && taken.asked < 20_000) yield ping(++taken.asked);
              else await new Promise<void>((resolve) => (wake = resolve));
            }
          },
          async close() {
            isClosed = true;
            gone.resolve();
            wake();
          },
        }),
      };
    },
  };
}

test("SEC-5 a server that asks for ever and takes no answers loses its connection, and is told why", async () => {
  const taken = { answers: 0, asked: 0 };
  const warnings: string[] = [];
  await using connection = openConnection(
    { name: "asking", url: "asking:here" },
    { transports: [askingForEver(taken)], onWarning: (text) => warnings.push(text) },
  );
  await until(() => connection.status().attemptCount > 1 || taken.asked >= 20_000);
  expect(taken.asked).toBeLessThan(5_000);
  expect(warnings.join()).toMatch(/leaves 1000 answers unread/);
});

test("SEC-5 a server over HTTP that asks for much and takes no answer holds few sockets", async () => {
  let answers = 0;
  await using server = await listen(async (request, response) => {
    if (request.method !== "POST") {
      response.writeHead(request.method === "GET" ? 200 : 405, { "content-type": "text/event-stream" });
      if (request.method !== "GET") return void response.end();
      response.write(Array.from({ length: 500 }, (_, index) => `data: ${ping(index)}\n\n`).join(""));
      return;
    }
    const message: Message = JSON.parse((await request.toArray()).join(""));
    const answer = answerTo(message);
    if (answer !== undefined) {
      response.writeHead("error" in answer ? 400 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    } else if (message.method !== undefined) response.writeHead(202).end();
    else answers += 1; // and says nothing to it
  });
  await using connection = openConnection({ name: "asking", url: server.url });
  await connection.settled(new AbortController().signal);
  await until(() => answers > 0);
  for (let round = 0; round < 3; round++)
    await expect(callThrough(connection, "missing")).rejects.toMatchObject({ reason: "TOOL_NOT_FOUND" });
  expect(answers).toBeLessThan(50);
});
