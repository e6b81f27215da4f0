import { HealthState, LoginState, type McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService, type WatchConnectionsResponse } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { Badge, Empty, Fault, type Tone } from "../parts/notice.tsx";
import { Section } from "../parts/screen.tsx";
import { clockOf, durationOf, msOf, wordFrom } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { type Followed, useFollowed } from "../suite/live.ts";

const lights: Readonly<Record<number, Tone>> = {
  [HealthState.HEALTHY]: "good",
  [HealthState.DEGRADED]: "wait",
  [HealthState.UNHEALTHY]: "bad",
};

interface Connections extends Followed<WatchConnectionsResponse> {
  all: readonly McpConnection[] | undefined;
}

function followConnections(): Connections {
  return {
    all: undefined,
    open: (signal) => clientOf(McpServerService).watchConnections({}, { signal }),
    take({ connections }) {
      this.all = connections;
    },
  };
}

/** Connections to MCP servers, each with its light. */
export function Servers() {
  const { model, fault } = useFollowed("connections", followConnections);
  return (
    <Section title="MCP servers in use">
      <Fault text={fault} />
      {model.all?.length === 0 && (
        <Empty>None is connected: a server is started by the first session that needs it.</Empty>
      )}
      <ul class="list">
        {model.all?.map((connection) => (
          <li key={connection.id}>
            <ServerLine connection={connection} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function ServerLine({ connection }: { connection: McpConnection }) {
  const { server, agent, health, latency, reason, toolCount, protocolVersion, checkTime, login } = connection;
  const latencyMs = latency && Number(latency.seconds) * 1_000 + latency.nanos / 1e6;
  return (
    <>
      <Badge tone={lights[health] ?? "quiet"}>{wordFrom(HealthState, health)}</Badge>
      <strong>{server}</strong>
      <span class="quiet">
        {[
          `of ${agent}`,
          `${toolCount} tools`,
          protocolVersion,
          latencyMs !== undefined && `answers in ${durationOf(latencyMs)}`,
          checkTime && `asked at ${clockOf(msOf(checkTime))}`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </span>
      {reason && <span class="fault">{reason}</span>}
      {login === LoginState.NEEDED && (
        <a class="button" href={`/oauth/login?server=${encodeURIComponent(server)}`}>
          log in
        </a>
      )}
    </>
  );
}
