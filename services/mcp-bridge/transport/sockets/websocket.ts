import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { transportFromChannel } from "../channel.ts";
import type { TransportModule } from "../module.ts";
import { urlOfServer } from "../url.ts";

/** One message a text frame: `ws://` and `wss://`. Its library is loaded with the first server of its kind. */
export const websocket: TransportModule = {
  name: "ws",
  schemes: ["ws", "wss"],
  async open(server, context) {
    const { openWebSocketChannel } = await import("./websocket-channel.ts");
    const { headers } = partsOfTransport(server);
    return { transport: transportFromChannel(openWebSocketChannel(urlOfServer(server), headers, context)) };
  },
};
