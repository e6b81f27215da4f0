import { HealthState, type McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { Fault } from "../parts/notice.tsx";
import { linkTo } from "../parts/place.ts";
import { usePolled } from "../suite/polled.ts";
import { listConnections } from "./connections.ts";

/** How many MCP servers are well, which leads to each. */
export function ServerCount() {
  const { value, fault } = usePolled("connections", listConnections, 5_000);
  return (
    <>
      <Fault text={fault} />
      {value && <a href={linkTo("tools")}>{mcpText(value)}</a>}
    </>
  );
}

function mcpText(connections: readonly McpConnection[]): string {
  if (connections.length === 0) return "no MCP server in use";
  const count = (isMeant: (health: HealthState) => boolean) =>
    connections.filter(({ health }) => isMeant(health)).length;
  const healthy = count((health) => health === HealthState.HEALTHY);
  const starting = count((health) => health === HealthState.UNSPECIFIED);
  const unwell = connections.length - healthy - starting;
  const parts = [`${healthy} healthy`, starting > 0 && `${starting} starting`, unwell > 0 && `${unwell} not well`];
  return `MCP servers: ${parts.filter(Boolean).join(", ")}`;
}
