import { once } from "node:events";
import { Socket } from "node:net";
import { promisify } from "node:util";
import { refuse } from "#runtime/failure/failure.ts";
import { readLines } from "#runtime/lifecycle/child-process/lines.ts";
import { type Channel, transportFromChannel } from "../channel.ts";
import type { TransportContext, TransportModule } from "../module.ts";
import { urlOfServer } from "../url.ts";
import { judgedAddress } from "./judged-address.ts";

/** One message a line over a connection, as over a process's stdin and stdout: `tcp://HOST:PORT`. */
export const tcp: TransportModule = {
  name: "tcp",
  schemes: ["tcp"],
  async open(server, context) {
    const url = urlOfServer(server);
    if (url.port === "")
      refuse("invalid_argument", `${url.href} has no port: write tcp://HOST:PORT`, { reason: "INVALID_REQUEST" });
    return { transport: transportFromChannel(channelTo(url, context)) };
  },
};

export const keepAliveMs = 15_000;

function channelTo(url: URL, { guard, maxMessageBytes }: TransportContext): Channel {
  const socket = new Socket().setNoDelay().setKeepAlive(true, keepAliveMs);
  socket.on("error", () => {}); // told to whoever sends and receives
  const connected = connect();
  connected.catch(() => {}); // likewise
  const write = promisify((text: string, done: (error?: Error | null) => void) => socket.write(text, done));
  return {
    async send(text) {
      await connected;
      await write(`${text}\n`);
    },
    async *receive() {
      await connected;
      yield* readLines(socket, { maxLineBytes: maxMessageBytes });
    },
    async close() {
      socket.destroy();
    },
  };

  async function connect(): Promise<void> {
    const [host, port] = [url.hostname.replace(/^\[|\]$/g, ""), Number(url.port)];
    const address = await judgedAddress(guard, host, port);
    if (socket.destroyed) throw new Error("the connection was given up");
    const opened = once(socket, "connect");
    socket.connect({ host, port, ...address });
    await opened;
  }
}
