import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "#gen/health/v1/health_pb.ts";
import { HealthState, type McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { Badge, Fault } from "../parts/notice.tsx";
import { linkTo } from "../parts/place.ts";
import { counted } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";

const healthMs = 5_000;

/** Whether the services serve, in a line that unfolds: by itself where one does not. */
export function Services() {
  const { value, fault } = usePolled(
    "health",
    async (signal) => (await clientOf(Health).list({}, { signal })).statuses,
    healthMs,
  );
  const names = Object.keys(value ?? {})
    .filter((name) => name !== "")
    .sort();
  const isUp = (name: string) => value?.[name]?.status === ServingStatus.SERVING;
  const down = names.filter((name) => !isUp(name));
  return (
    <>
      <Fault text={fault} />
      {value && (
        <details class="grow" open={down.length > 0}>
          <summary>
            {counted(names.length - down.length, "service")} serving
            {down.length > 0 && <span class="fault"> · {down.length} not there</span>}
          </summary>
          <ul class="list services">
            {names.map((name) => (
              <li key={name}>
                <Badge tone={isUp(name) ? "good" : "bad"}>{isUp(name) ? "serving" : "not there"}</Badge> {name}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** How many MCP servers are well, which leads to each. */
export function McpServers() {
  const { value, fault } = usePolled(
    "connections",
    async (signal) => (await clientOf(McpServerService).listConnections({ pageSize: 1_000 }, { signal })).connections,
    healthMs,
  );
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
