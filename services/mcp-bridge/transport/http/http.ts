import { partsOfTransport } from "#runtime/config/server-transport.ts";
import type { TransportModule } from "../module.ts";
import { urlOfServer } from "../url.ts";

/** Streamable HTTP, of every revision. Its libraries take 20 MB, so they are loaded with the first server of its kind. */
export const http: TransportModule = {
  name: "http",
  schemes: ["http", "https"],
  async open(server, context) {
    const { HttpTransport } = await import("./http-transport.ts");
    return { transport: new HttpTransport(urlOfServer(server), partsOfTransport(server).headers, context) };
  },
};
