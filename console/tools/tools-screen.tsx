import { useSignal } from "@preact/signals";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type ListToolsResponse, type ModelTool, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { Badge, Empty, Fault } from "../parts/notice.tsx";
import { choose, linkTo, place } from "../parts/place.ts";
import { Rows } from "../parts/rows.tsx";
import { Facts, Screen, Section } from "../parts/screen.tsx";
import { prettyJson } from "../parts/text/pretty-json.ts";
import { TextBlock } from "../parts/text-block.tsx";
import { wordFrom } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";
import { Explained } from "./explained.tsx";
import { Servers } from "./servers.tsx";
import { ToolChanges } from "./tool-changes.tsx";
import { TryTool } from "./try-tool.tsx";

/** How often tools are listed anew, in ms. */
const refreshMs = 4_000;

/** An agent's tools as its model has them, and the servers that bring some of them. */
export function ToolsScreen() {
  const { id } = place.value;
  const agents = usePolled(
    "agents",
    async (signal) => {
      const page = (pageToken: string) => clientOf(AgentService).listAgents({ pageSize: 1_000, pageToken }, { signal });
      const pages = await allPages(page);
      return pages.flatMap(({ agents }) => agents.map(({ agent }) => agent?.name ?? "")).sort();
    },
    10_000,
  );
  const agent = id || agents.value?.[0] || "";
  return (
    <Screen
      title="Tools"
      actions={
        <label>
          Tools of{" "}
          <select
            value={agent}
            onChange={(event) => {
              location.hash = linkTo("tools", event.currentTarget.value);
            }}
          >
            {(agents.value ?? [agent]).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      }
    >
      <Fault text={agents.fault} />
      {agents.value?.length === 0 && (
        <Empty>There is no agent yet: put a file of one into the project's agents/.</Empty>
      )}
      {agent && <AgentTools key={agent} agent={agent} />}
      <Servers />
    </Screen>
  );
}

async function listTools(agent: string, signal: AbortSignal): Promise<Pick<ListToolsResponse, "tools" | "sources">> {
  const scope = { case: "agent", value: agent } as const;
  const page = (pageToken: string) =>
    clientOf(ToolService).listTools({ scope, pageSize: 1_000, pageToken }, { signal });
  const pages = await allPages(page);
  return { tools: pages.flatMap(({ tools }) => tools), sources: pages[0].sources };
}

function AgentTools({ agent }: { agent: string }) {
  const { query } = place.value;
  const words = useSignal("");
  const { value, fault } = usePolled(agent, (signal) => listTools(agent, signal), refreshMs);
  const needle = words.value.toLowerCase();
  const shown = value?.tools.filter((tool) => textOfTool(tool).includes(needle)) ?? [];
  const chosen = value?.tools.find(({ modelName }) => modelName === query.get("tool"));
  return (
    <>
      <Fault text={fault} />
      {value?.sources
        .filter(({ available }) => !available)
        .map(({ source, reason, starting }) => (
          <p key={source} class={starting ? "hint" : "fault"}>
            {source}: {reason}
          </p>
        ))}
      <ToolChanges agent={agent} />
      <div class="toolbar">
        <label class="wide">
          Words{" "}
          <input
            type="search"
            value={words.value}
            onInput={(event) => {
              words.value = event.currentTarget.value;
            }}
          />
        </label>
        <span class="quiet">{value && `${shown.length} of ${value.tools.length}`}</span>
      </div>
      {value === undefined && !fault && (
        <p class="quiet">The tools are being listed; servers that they come from are started first.</p>
      )}
      {value?.tools.length === 0 && <Empty>This agent has no tools.</Empty>}
      <div class="two">
        <Rows
          label={`Tools of ${agent}`}
          rows={shown}
          rowHeight={40}
          keyOf={({ modelName }) => modelName}
          render={(tool) => (
            <button
              type="button"
              class="tool-row"
              aria-pressed={tool === chosen}
              onClick={() => choose({ tool: tool.modelName })}
            >
              <ToolState tool={tool} />
              <span class="grow clip">{tool.modelName}</span>
              <span class="quiet">{wordFrom(ExecutionType, tool.tool?.executionType ?? 0)}</span>
            </button>
          )}
        />
        <div class="run-side">
          {chosen ? (
            <ToolDetail key={chosen.modelName} agent={agent} tool={chosen} />
          ) : (
            value && <p class="quiet">Choose a tool.</p>
          )}
        </div>
      </div>
    </>
  );
}

function textOfTool({ modelName, reference, tool }: ModelTool): string {
  return `${modelName} ${reference} ${tool?.description ?? ""}`.toLowerCase();
}

function ToolState({ tool: { callable, available } }: { tool: ModelTool }) {
  if (callable) return <Badge tone="good">callable</Badge>;
  return available ? <Badge tone="quiet">not allowed</Badge> : <Badge tone="bad">not there</Badge>;
}

function ToolDetail({ agent, tool }: { agent: string; tool: ModelTool }) {
  const { modelName, reference, aliases, reason, tool: definition } = tool;
  return (
    <div class="detail">
      <h2>{modelName}</h2>
      <p>{definition?.description}</p>
      <Fault text={reason} />
      <Facts
        of={{
          reference: (
            <a href={linkTo("audit", "", { words: reference })} title="what was decided of it">
              {reference}
            </a>
          ),
          aliases: aliases.join(", "),
          effect: wordFrom(Effect, definition?.effect ?? 0),
          "executed by": wordFrom(ExecutionType, definition?.executionType ?? 0),
        }}
      />
      <Explained agent={agent} name={modelName} />
      <Section title="Try it">
        <TryTool agent={agent} name={modelName} schemaJson={definition?.inputSchemaJson ?? ""} />
      </Section>
      <TextBlock label="parameters" text={prettyJson(definition?.inputSchemaJson || "{}")} />
    </div>
  );
}
