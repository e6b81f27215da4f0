import { once } from "node:events";
import { promisify } from "node:util";
import { createWebSocketStream, WebSocket } from "ws";
import { comesWithin } from "#runtime/time/comes-within.ts";
import type { Channel } from "../channel.ts";
import type { TransportContext } from "../module.ts";
import { judgedAddress } from "./judged-address.ts";
import { keepAliveMs } from "./tcp.ts";

const SUBPROTOCOL = "mcp";
const CLOSE_TIMEOUT_MS = 1_000;

/** A server that does not know the subprotocol is asked once more without it. Redirects are not followed: headers hold secrets. */
export function openWebSocketChannel(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { guard, maxMessageBytes }: TransportContext,
): Channel {
  let isClosed = false;
  let socket: WebSocket | undefined;
  const connected = connect([SUBPROTOCOL]).catch((error: Error) => {
    if (!/no subprotocol/i.test(error.message)) throw error;
    return connect([]);
  });
  connected.catch(() => {}); // told to whoever sends and receives
  return {
    async send(text) {
      const { opened } = await connected;
      await promisify((done: (error?: Error | null) => void) => opened.send(text, done))();
    },
    async *receive() {
      const { messages } = await connected;
      for await (const message of messages) yield String(message);
    },
    async close() {
      isClosed = true;
      if (socket === undefined || socket.readyState === WebSocket.CLOSED) return;
      const closed = once(socket, "close").catch(() => {}); // it broke: all the better
      socket.close();
      await comesWithin(CLOSE_TIMEOUT_MS, closed);
      socket.terminate();
    },
  };

  async function connect(protocols: string[]) {
    const port = Number(url.port) || (url.protocol === "wss:" ? 443 : 80);
    const address = await judgedAddress(guard, url.hostname, port);
    if (isClosed) throw new Error("the connection was given up");
    const opened = new WebSocket(url, protocols, { headers, maxPayload: maxMessageBytes, ...address });
    opened.on("error", () => {}); // told to whoever waits
    opened.on("upgrade", ({ socket }) => socket.setKeepAlive(true, keepAliveMs));
    socket = opened;
    const messages = createWebSocketStream(opened, { readableObjectMode: true }); // from the first message on
    messages.on("error", () => {}); // likewise
    await once(opened, "open");
    return { opened, messages };
  }
}
