import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { delay } from "#runtime/time/delay.ts";

/** What tools change, counted by the key of the call. */
export interface Outside extends AsyncDisposable {
  readonly url: string;
  readonly address: string;
  readonly effects: ReadonlyMap<string, number>;
}

/** So long a call lasts, so that most strikes come in the middle of some. */
const LASTS_MS = 200;

export async function openOutside(): Promise<Outside> {
  const effects = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const key = keyOf(await textOf(request));
    effects.set(key, (effects.get(key) ?? 0) + 1);
    await delay(LASTS_MS);
    response.setHeader("content-type", "application/json").end(JSON.stringify({ key }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    effects,
    address,
    url: `http://${address}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  return Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString();
}

/** A sub-agent's model writes more behind the key of the call that started it. */
function keyOf(text: string): string {
  return String(JSON.parse(text || "{}").key ?? "").split("-")[0] ?? "";
}
