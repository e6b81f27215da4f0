import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createFrameSplitter, type NatsFrame } from "./nats-frames.ts";

/** What becomes of a frame. */
export type Verdict = "pass" | "drop" | "twice";

export interface NatsProxyOptions {
  /** The server's port on the loopback interface. */
  port: number;
  /** Asked for each frame that the client (`up`) or the server (`down`) sends; what follows in that direction waits for it. */
  onFrame: (frame: NatsFrame, direction: "up" | "down") => Verdict | Promise<Verdict>;
}

export interface NatsProxy extends AsyncDisposable {
  readonly port: number;
}

/** A TCP proxy that knows the frames of NATS, and holds back, drops or doubles single ones of them. */
export async function openNatsProxy({ port, onFrame }: NatsProxyOptions): Promise<NatsProxy> {
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ port, host: "127.0.0.1", noDelay: true });
    const ends: [Socket, Socket, "up" | "down"][] = [
      [client, server, "up"],
      [server, client, "down"],
    ];
    for (const [from, to, direction] of ends) {
      sockets.add(from);
      from.on("error", () => {}); // either end may go at any time; `close` follows
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      pump(from, to, (frame) => onFrame(frame, direction));
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
}

function pump(from: Socket, to: Socket, decide: (frame: NatsFrame) => Verdict | Promise<Verdict>): void {
  const split = createFrameSplitter();
  const waiting: NatsFrame[] = [];
  let isHeld = false;

  function send({ bytes }: NatsFrame, verdict: Verdict): void {
    if (verdict === "drop" || to.destroyed) return;
    to.write(bytes);
    if (verdict === "twice") to.write(bytes);
  }

  function advance(): void {
    to.cork();
    while (!isHeld) {
      const frame = waiting.shift();
      if (frame === undefined) break;
      const verdict = decide(frame);
      if (typeof verdict === "string") send(frame, verdict);
      else hold(frame, verdict);
    }
    to.uncork();
  }

  function hold(frame: NatsFrame, decided: Promise<Verdict>): void {
    isHeld = true;
    void decided.then((verdict) => {
      isHeld = false;
      send(frame, verdict);
      advance();
    });
  }

  from.on("data", (chunk) => {
    waiting.push(...split(chunk));
    if (!isHeld) advance();
  });
}
