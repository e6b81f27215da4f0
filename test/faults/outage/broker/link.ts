import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createFrameSplitter, type NatsFrame } from "../../../harness/proxy/nats-frames.ts";

/** The way of one instance to the broker. */
export interface Link extends AsyncDisposable {
  readonly port: number;
  /**
   * Nothing comes through any more, in either direction, and neither end is told. Of what was on its way nothing is lost: it comes
   * through in the end, as TCP has it, unless the broker has given up the connection. With `answersPings` the broker does not.
   */
  fallSilent(options: { answersPings: boolean }): void;
  restore(): void;
  /** Each connection is reset, and the next one comes through. */
  break(): void;
}

interface Way {
  readonly from: Socket;
  readonly to: Socket;
  readonly held: Buffer[];
}

export async function openLink(port: number): Promise<Link> {
  const ways = new Set<Way>();
  const sockets = new Set<Socket>();
  let silence: { answersPings: boolean } | undefined;

  function join(from: Socket, to: Socket, isFromBroker: boolean): void {
    const way: Way = { from, to, held: [] };
    ways.add(way);
    sockets.add(from);
    const split = createFrameSplitter();
    from.on("error", () => {}); // either end may go at any time; `close` follows
    from.on("data", (chunk) => {
      to.cork(); // frames that came together leave together: there are many of them, and few processors
      for (const frame of split(chunk)) pass(way, frame, isFromBroker);
      to.uncork();
    });
    from.on("close", () => {
      sockets.delete(from);
      if (silence) return; // the other end is not told before the link is restored
      ways.delete(way);
      to.destroy();
    });
  }

  function pass({ from, to, held }: Way, { verb, bytes }: NatsFrame, isFromBroker: boolean): void {
    if (!silence) to.write(bytes);
    else if (isFromBroker && verb === "PING" && silence.answersPings) from.write("PONG\r\n");
    else held.push(bytes);
  }

  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ port, host: "127.0.0.1", noDelay: true });
    join(client, server, false);
    join(server, client, true);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    fallSilent(options) {
      silence = options;
    },
    restore() {
      silence = undefined;
      for (const way of ways) {
        for (const bytes of way.held.splice(0)) way.to.write(bytes);
        if (way.from.destroyed) {
          ways.delete(way);
          way.to.destroy();
        }
      }
    },
    break() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
}
