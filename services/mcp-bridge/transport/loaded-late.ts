import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { type Channel, transportFromChannel } from "./channel.ts";
import type { TransportContext, TransportModule } from "./module.ts";
import { urlOfServer } from "./url.ts";

/* The transports whose libraries take up to 20 MB: each is loaded with the first server of its kind. */

/** Streamable HTTP, of every revision. */
export const http: TransportModule = {
  name: "http",
  schemes: ["http", "https"],
  async open(server, context) {
    const { HttpTransport } = await import("./http/http-transport.ts");
    return { transport: new HttpTransport(urlOfServer(server), partsOfTransport(server).headers, context) };
  },
};

/** HTTP with server-sent events, as revision 2024-11-05 has it. */
export const sse = overChannel("sse", [], async () => (await import("./http/sse-channel.ts")).openSseChannel);

/** One message a text frame: `ws://` and `wss://`. */
export const websocket = overChannel(
  "ws",
  ["ws", "wss"],
  async () => (await import("./sockets/websocket-channel.ts")).openWebSocketChannel,
);

type OpenChannel = (url: URL, headers: Readonly<Record<string, string>>, context: TransportContext) => Channel;

function overChannel(name: string, schemes: string[], load: () => Promise<OpenChannel>): TransportModule {
  return {
    name,
    schemes,
    async open(server, context) {
      const openChannel = await load();
      const channel = openChannel(urlOfServer(server), partsOfTransport(server).headers, context);
      return { transport: transportFromChannel(channel) };
    },
  };
}
