import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface ProxyOptions {
  /** The port on the loopback interface that connections are passed on to. */
  port: number;
  /** Asked for each piece a client sends, which goes on once it resolves; `false` keeps the piece for `release`. */
  onClientData?: (data: Buffer, connection: number) => boolean | Promise<boolean>;
  /** Likewise for each piece a server sends; `false` drops it. */
  onServerData?: (data: Buffer, connection: number) => boolean;
}

export interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** Ends a client's connection; the server's end stays, so that what was kept can still reach it. */
  cut(connection: number): void;
  /** Sends the server what was kept of a connection. */
  release(connection: number): void;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly kept: Buffer[];
}

/** A TCP proxy that loses and delays, for faults between a client and its server. Connections are counted from 0. */
export async function openProxy(options: ProxyOptions): Promise<Proxy> {
  const pairs: Pair[] = [];
  const listener = createServer((client) => {
    const connection = pairs.length;
    const pair: Pair = { client, server: connect(options.port, "127.0.0.1"), kept: [] };
    pairs.push(pair);
    for (const socket of [client, pair.server]) socket.on("error", () => {}); // either end may go at any time
    let order = Promise.resolve();
    client.on("data", (data) => {
      order = order.then(async () => {
        const goesOn = (await options.onClientData?.(data, connection)) ?? true;
        if (goesOn) pair.server.write(data);
        else pair.kept.push(data);
      });
    });
    pair.server.on("data", (data) => {
      if (options.onServerData?.(data, connection) ?? true) client.write(data);
    });
    pair.server.on("close", () => client.destroy());
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    cut: (connection) => void pairs[connection]?.client.destroy(),
    release(connection) {
      for (const data of pairs[connection]?.kept.splice(0) ?? []) pairs[connection]?.server.write(data);
    },
    async [Symbol.asyncDispose]() {
      for (const { client, server } of pairs) {
        client.destroy();
        server.destroy();
      }
      listener.close();
      await once(listener, "close");
    },
  };
}
