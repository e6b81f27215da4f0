import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createNameMatcher, parseReference, reachesInto } from "../../tools/names.ts";
import { executorOfCatalogueTool, PROVIDER_BY_KIND } from "../../tools/tool-set/executor.ts";
import { CALLER_PROVIDER, SPACES_PROVIDER } from "../../tools/tool-set/offer.ts";
import type { Ask } from "./offer-watch.ts";
import type { FindProvider } from "./provider-client.ts";

export interface AsksOptions {
  catalogue: ReadonlyMap<string, Tool>;
  /** All providers, those of the suite first. */
  providers: readonly string[];
  find: FindProvider;
  hasSession: boolean;
  /** The sources that the run brings along, beside those of the agent's configuration. */
  fromRun?: ReadonlySet<string>;
}

/**
 * Whom to ask for an agent's tools: the providers of those of its sources that `use` reaches into; spaces and the caller always; every provider for its own
 * offer only if `use` names something that the agent's sources and the catalogue do not have, or a tool of the catalogue that it runs.
 */
export function decideAsks(agent: Pick<Agent, "sources" | "tools">, options: AsksOptions): Ask[] {
  const { catalogue, providers, find, hasSession, fromRun } = options;
  const use = agent.tools?.use ?? [];
  const used = agent.sources.filter(({ name }) => use.some((pattern) => reachesInto(pattern, name)));
  const bySource = Map.groupBy(used, ({ provider }) => provider);
  const declared = [...bySource].map(([provider, sources]) => ({
    provider,
    client: find(provider),
    sources: sources.map(
      ({ name, config }): Source => ({
        $typeName: "toolbus.tool.v1.Source",
        name,
        fromRun: fromRun?.has(name) ?? false,
        ...(config && { config }),
      }),
    ),
  }));
  const names = new Set(agent.sources.map(({ name }) => name));
  const needsAll = use.some((pattern) => reachesFurther(pattern, names, catalogue));
  const running = providersOfUsed(use, catalogue);
  const own = providers.filter((provider) => {
    if (provider === CALLER_PROVIDER) return hasSession;
    return provider === SPACES_PROVIDER || needsAll || running.has(provider);
  });
  return [...declared, ...own.map((provider) => ({ provider, client: find(provider), sources: [] }))];
}

/** Those of the suite's providers that run tools of the catalogue that are in use: they describe them. */
function providersOfUsed(use: readonly string[], catalogue: ReadonlyMap<string, Tool>): Set<string> {
  const isInUse = createNameMatcher(use);
  const used = [...catalogue.values()].filter((tool) => PROVIDER_BY_KIND.has(tool.executionType) && isInUse(tool.name));
  const executors = used.map(executorOfCatalogueTool);
  return new Set(executors.flatMap((executor) => (executor.kind === "provider" ? [executor.provider] : [])));
}

function reachesFurther(pattern: string, sources: ReadonlySet<string>, catalogue: ReadonlyMap<string, Tool>): boolean {
  const { source, tool } = parseReference(pattern);
  return source === undefined ? !catalogue.has(tool) : !sources.has(source);
}
