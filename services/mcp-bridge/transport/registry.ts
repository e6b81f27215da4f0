import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { refuseRequest } from "#runtime/failure/failure.ts";
import { http, sse, websocket } from "./loaded-late.ts";
import type { TransportModule } from "./module.ts";
import { tcp } from "./sockets/tcp.ts";
import { stdio } from "./stdio.ts";

export type FindTransport = (server: McpServer) => TransportModule;

/** Chooses by the name that a server gives, else by the scheme of its URL, else, for a command, stdio. */
export function createTransportRegistry(others: readonly TransportModule[] = []): FindTransport {
  const modules = [...others, stdio, http, sse, websocket, tcp];
  return (server) => {
    const { name, url } = partsOfTransport(server);
    if (name !== "") return modules.find((module) => module.name === name) ?? refuseUnknown(`the transport ${name}`);
    const scheme = URL.parse(url)?.protocol.slice(0, -1) ?? "";
    return modules.find((module) => module.schemes.includes(scheme)) ?? refuseUnknown(`a transport for ${url}`);
  };

  function refuseUnknown(what: string): never {
    const known = modules.map((module) => module.name).join(", ");
    return refuseRequest(`there is no such thing as ${what}; known are ${known}`, {
      field: "transport",
      message: `must be one of ${known}`,
    });
  }
}
