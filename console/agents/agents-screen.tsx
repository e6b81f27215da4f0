import { toJson } from "@bufbuild/protobuf";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AgentService, type StoredAgent, type WatchAgentsResponse } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Badge, Empty, Fault } from "../parts/notice.tsx";
import { linkTo, place } from "../parts/place.ts";
import { Facts, Screen, Section } from "../parts/screen.tsx";
import { TextBlock } from "../parts/text-block.tsx";
import { clientOf } from "../suite/connection.ts";
import { type Followed, useFollowed } from "../suite/live.ts";
import { Sessions } from "./sessions.tsx";

interface Agents extends Followed<WatchAgentsResponse> {
  known: WatchAgentsResponse | undefined;
}

function followAgents(): Agents {
  return {
    known: undefined,
    open: (signal) => clientOf(AgentService).watchAgents({}, { signal }),
    take(response) {
      this.known = response;
    },
  };
}

/** Agents with what is wrong with their files, and the sessions that they are in. */
export function AgentsScreen() {
  const { model, fault } = useFollowed("agents", followAgents);
  const { id } = place.value;
  const agents = [...(model.known?.agents ?? [])].sort(byName);
  const names = agents.map(({ agent }) => agent?.name ?? "");
  const chosen = agents.find(({ agent }) => agent?.name === id);
  return (
    <Screen title="Agents" aside={model.known && <span class="quiet">{agents.length}</span>}>
      <Fault text={fault} />
      {model.known?.refusedFiles.map(({ file, faults }) => (
        <div key={file} class="fault" role="alert">
          <strong>{file}</strong> is refused:
          <ul>
            {faults.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </div>
      ))}
      {model.known && agents.length === 0 && <Empty>No agent yet: put a file of one into the project's agents/.</Empty>}
      <div class="two">
        <ul class="list">
          {agents.map((stored) => (
            <AgentLine key={stored.agent?.name} stored={stored} isChosen={stored === chosen} />
          ))}
        </ul>
        <div class="run-side">
          {chosen && <AgentDetail stored={chosen} />}
          {!chosen && model.known && <p class="quiet">{id && `There is no agent “${id}”. `}Choose an agent.</p>}
        </div>
      </div>
      <Sessions agents={names} />
    </Screen>
  );
}

function byName(one: StoredAgent, other: StoredAgent): number {
  return (one.agent?.name ?? "").localeCompare(other.agent?.name ?? "");
}

function AgentLine({ stored, isChosen }: { stored: StoredAgent; isChosen: boolean }) {
  const { agent, warnings } = stored;
  return (
    <li>
      <a href={linkTo("agents", agent?.name)} aria-current={isChosen ? "true" : undefined}>
        <strong>{agent?.name}</strong> <span class="quiet">{agent?.description}</span>
      </a>
      {warnings.length > 0 && <Badge tone="wait">{warnings.length} to look at</Badge>}
    </li>
  );
}

function AgentDetail({ stored }: { stored: StoredAgent }) {
  const { agent, revision, origin, warnings, redacted } = stored;
  if (!agent) return null;
  return (
    <div class="detail">
      <h2>{agent.name}</h2>
      <p>{agent.description}</p>
      {warnings.map((text) => (
        <p key={text} class="hint">
          {text}
        </p>
      ))}
      <Facts
        of={{
          from: origin,
          revision: `${revision}`,
          model: agent.model && `${agent.model.provider} / ${agent.model.model}`,
          shown: redacted ? "without its instructions and secrets: only operators see those" : "",
        }}
      />
      <Section title="Its configuration">
        <TextBlock label="as JSON" text={JSON.stringify(toJson(AgentSchema, agent), undefined, 2)} />
      </Section>
      <p>
        <a href={linkTo("tools", agent.name)}>its tools</a>
      </p>
    </div>
  );
}
