/** A server of the chat completions API; each request is answered by the next of the answers. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach } from "vitest";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

interface Asked {
  readonly body: Record<string, unknown>;
  readonly headers: IncomingMessage["headers"];
  readonly atMs: number;
}

export async function openProvider(answers: ((response: ServerResponse) => void)[]) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    asked.push({
      body: JSON.parse(Buffer.concat(chunks).toString()),
      headers: request.headers,
      atMs: performance.now(),
    });
    answers[asked.length - 1]?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { asked, url: `http://127.0.0.1:${port}/v1` };
}

/** A whole answer. */
export function stream(deltas: object[], finishReason = "stop") {
  return (response: ServerResponse) => {
    begin(response, deltas);
    const finish = { choices: [{ index: 0, delta: {}, finish_reason: finishReason }] };
    const usage = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } };
    response.end(`${frame(finish)}${frame(usage)}data: [DONE]\n\n`);
  };
}

/** The beginning of one. */
export function begin(response: ServerResponse, deltas: object[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const delta of deltas) response.write(frame({ choices: [{ index: 0, delta }] }));
}

export function frame(chunk: object): string {
  return `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "tiny-2", ...chunk })}\n\n`;
}
