import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

/** How long it lets a connection live. */
export const CUT_MS = 150;

export interface CuttingProxy extends AsyncDisposable {
  readonly url: string;
  /** How many connections it has cut. */
  readonly cuts: number;
}

/** Passes connections on to the gateway, and cuts each. */
export async function openCuttingProxy(port: number): Promise<CuttingProxy> {
  let cuts = 0;
  const listener = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    for (const socket of [client, server]) socket.on("error", () => {}); // either end may go at any time
    client.pipe(server).pipe(client);
    const timer = setTimeout(() => {
      cuts += 1;
      client.destroy();
      server.destroy();
    }, CUT_MS);
    client.on("close", () => clearTimeout(timer));
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
    },
  };
}
