import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { instanceService } from "#runtime/bus/ownership/ownership.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { timedBy } from "#runtime/time/duration.ts";
import { type ClientForOptions, clientFor } from "../../clients.ts";
import type { Part } from "../connection/fleet.ts";
import { HOPS_HEADER, PEER_HEADER, type Peer } from "../provider/provider.ts";

type Interceptors = NonNullable<ClientForOptions["interceptors"]>;

/** How long another instance may take for what it does at once, and for what includes the start of a server. */
const PART_TIMEOUT_MS = 15_000;

const headers = { [PEER_HEADER]: "1", [HOPS_HEADER]: "3" };

/** The other instances of this service, as clients of what each of them serves under its own name. */
export function createPeers(bus: Bus, service: string, interceptors: Interceptors) {
  const clientOptionsOf = (instance: string) => ({ process: instanceService(service, instance), interceptors });

  function peer(instance: string): Peer {
    const client = clientFor(bus, ToolProviderService, clientOptionsOf(instance));
    const content = clientFor(bus, McpContentService, clientOptionsOf(instance));
    return {
      listTools: (request, signal) => client.getProvidedTools(asked(request), { headers, signal }),
      watchTools: (request, signal) => client.watchProvidedTools(asked(request), { headers, signal }),
      callTool: (request, signal) =>
        client.executeTool({ ...request, ...timedBy(request.deadline) }, { headers, signal }),
      async *watchResource({ sessionId, source, uri }, signal) {
        const asked = { sessionId, resources: [{ source, uri }] };
        for await (const { watched, updated } of content.watchResources(asked, { headers, signal })) {
          if (watched.length > 0) yield "watched";
          if (updated.length > 0) yield "updated";
        }
      },
    };
  }

  function partOf(instance: string): Part {
    const client = clientFor(bus, McpServerService, clientOptionsOf(instance));
    const options = (signal: AbortSignal) => ({ headers, signal, timeoutMs: PART_TIMEOUT_MS });
    return {
      async list(sessionId, signal) {
        const pages = await allPages((pageToken) => client.listConnections({ sessionId, pageToken }, options(signal)));
        return pages.flatMap(({ connections }) => connections);
      },
      release: async (holder, signal) => (await client.closeConnections(holder, options(signal))).closedCount,
      watch: (sessionId, signal) => connectionsOf(client.watchConnections({ sessionId }, { headers, signal })),
    };
  }

  return { peer, partOf };
}

async function* connectionsOf(told: AsyncIterable<{ connections: McpConnection[] }>): AsyncGenerator<McpConnection[]> {
  for await (const { connections } of told) yield connections;
}

/** A scope that is absent is left out. */
function asked<S, R>({ scope, sources }: { scope: S | undefined; sources: R[] }) {
  return { sources, ...(scope !== undefined && { scope }) };
}
