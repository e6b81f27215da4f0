import { useSignal } from "@preact/signals";
import { HealthState, LoginState, type McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService, type WatchConnectionsResponse } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { LOGIN_PATH } from "#runtime/config/public-url.ts";
import { Badge, Empty, Fault, type Tone } from "../parts/notice.tsx";
import { linkTo } from "../parts/place.ts";
import { Section } from "../parts/screen.tsx";
import { TextBlock } from "../parts/text-block.tsx";
import { clockOf, durationOf, msOf, wordFrom } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { type Followed, useFollowed } from "../suite/live.ts";
import { usePolled } from "../suite/polled.ts";
import { listConnections } from "./connections.ts";

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
  const { server, agent, sessionId, runId, health, latency, reason, toolCount, protocolVersion } = connection;
  const { checkTime, login, attemptCount } = connection;
  const isStarting = health === HealthState.UNSPECIFIED;
  const latencyMs = latency && Number(latency.seconds) * 1_000 + latency.nanos / 1e6;
  return (
    <>
      <Badge tone={lights[health] ?? "busy"}>{isStarting ? "starting" : wordFrom(HealthState, health)}</Badge>
      <strong>{server}</strong>
      <span class="quiet">
        {[
          agent === "" ? "for all agents" : `for ${agent}`,
          !isStarting && `${toolCount} tools`,
          protocolVersion && `MCP ${protocolVersion}`,
          latencyMs !== undefined && `answers in ${durationOf(latencyMs)}`,
          attemptCount > 1 && `connected to ${attemptCount} times`,
          checkTime && `as of ${clockOf(msOf(checkTime))}`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </span>
      {runId !== "" && <a href={linkTo("runs", runId)}>its run</a>}
      {sessionId !== "" && <a href={linkTo("runs", "", { session: sessionId })}>its session</a>}
      {reason && <span class={isStarting ? "hint" : "fault"}>{reason}</span>}
      {login === LoginState.NEEDED && <LoginLink server={server} />}
      <LastLines connection={connection} />
    </>
  );
}

/** There is no such page where the gateway knows no address that browsers come back to: the reason names a command, too. */
function LoginLink({ server }: { server: string }) {
  const { value } = usePolled("login page", async (signal) => (await fetch(LOGIN_PATH, { signal })).ok, 0);
  return value ? (
    <a class="button" href={`${LOGIN_PATH}?server=${encodeURIComponent(server)}`}>
      log in
    </a>
  ) : null;
}

/** What the server wrote to its standard error, asked for while one looks. */
function LastLines({ connection: { id } }: { connection: McpConnection }) {
  const isOpen = useSignal(false);
  return (
    <details
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>what it wrote last</summary>
      {isOpen.value && <Lines id={id} />}
    </details>
  );
}

function Lines({ id }: { id: string }) {
  const lastLines = async (signal: AbortSignal) =>
    (await listConnections(signal)).find((connection) => connection.id === id)?.lastLines ?? [];
  const { value, fault } = usePolled(id, lastLines, 2_000);
  return (
    <>
      <Fault text={fault} />
      {value?.length === 0 && <p class="quiet">Nothing, to its standard error.</p>}
      {value && value.length > 0 && <TextBlock label="standard error" text={value.join("\n")} />}
    </>
  );
}
