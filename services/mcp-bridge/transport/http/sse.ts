import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { transportFromChannel } from "../channel.ts";
import type { TransportModule } from "../module.ts";
import { urlOfServer } from "../url.ts";

/** HTTP with server-sent events, as revision 2024-11-05 has it. Its libraries are loaded with the first server of its kind. */
export const sse: TransportModule = {
  name: "sse",
  schemes: [],
  async open(server, context) {
    const { openSseChannel } = await import("./sse-channel.ts");
    const { headers } = partsOfTransport(server);
    return { transport: transportFromChannel(openSseChannel(urlOfServer(server), headers, context)) };
  },
};
