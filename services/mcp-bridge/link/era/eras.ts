import { Era, type McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { programOf } from "../../servers/start-time.ts";
import type { KnownEra } from "./connect-by-era.ts";

const MOST_KNOWN = 1_000;

/** How servers are spoken with: as their entries declare, else as was found at their last start. */
export class Eras {
  readonly #found = new BoundedMap<string, KnownEra>(MOST_KNOWN);

  of(server: McpServer): KnownEra | undefined {
    if (server.era === Era.LEGACY) return "legacy";
    return server.era === Era.MODERN ? "modern" : this.#found.get(keyOf(server));
  }

  note(server: McpServer, era: KnownEra): void {
    this.#found.set(keyOf(server), era);
  }

  /** It did not start: it may be another one by now, and is asked again. */
  forget(server: McpServer): void {
    this.#found.delete(keyOf(server));
  }
}

function keyOf(server: McpServer): string {
  return programOf(server) || partsOfTransport(server).url;
}
