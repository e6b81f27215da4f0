import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { transportFromChannel } from "./channel.ts";
import type { TransportModule } from "./module.ts";
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
export const sse: TransportModule = {
  name: "sse",
  schemes: [],
  async open(server, context) {
    const { openSseChannel } = await import("./http/sse-channel.ts");
    const { headers } = partsOfTransport(server);
    return { transport: transportFromChannel(openSseChannel(urlOfServer(server), headers, context)) };
  },
};

/** One message a text frame: `ws://` and `wss://`. */
export const websocket: TransportModule = {
  name: "ws",
  schemes: ["ws", "wss"],
  async open(server, context) {
    const { openWebSocketChannel } = await import("./sockets/websocket-channel.ts");
    const { headers } = partsOfTransport(server);
    return { transport: transportFromChannel(openWebSocketChannel(urlOfServer(server), headers, context)) };
  },
};
