import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import type { Effect } from "../history/history.ts";

export interface EffectServer extends AsyncDisposable {
  readonly port: number;
}

/** The outside world: counts what is done to it. Told of an effect after it has happened; answers when `onEffect` resolves. */
export async function openEffectServer(onEffect: (effect: Effect) => Promise<void>): Promise<EffectServer> {
  const server = createServer((request, response) => {
    act(request, response, onEffect).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function act(
  request: IncomingMessage,
  response: ServerResponse,
  onEffect: (effect: Effect) => Promise<void>,
): Promise<void> {
  response.on("error", () => {}); // the router may be killed in the middle
  const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>).catch(() => undefined);
  if (chunks === undefined) return; // half a request changes nothing
  const { key } = JSON.parse(Buffer.concat(chunks).toString()) as { key: string };
  const tool = (request.url ?? "").slice(1);
  const idempotencyKey = String(request.headers["idempotency-key"] ?? "");
  await onEffect({ tool, key, idempotencyKey, atMs: performance.now() });
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ done: key }));
}
