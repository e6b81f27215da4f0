import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { TransportModule } from "../module.ts";

/** Streamable HTTP, of every revision. Its libraries take 20 MB, so they are loaded with the first server of its kind. */
export const http: TransportModule = {
  name: "http",
  schemes: ["http", "https"],
  async open(server, context) {
    const { url: text, headers } = partsOfTransport(server);
    const url = URL.parse(text) ?? refuse("invalid_argument", `${text} is no URL`, { reason: "INVALID_REQUEST" });
    const { HttpTransport } = await import("./http-transport.ts");
    return { transport: new HttpTransport(url, headers, context) };
  },
};
