import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/provider_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createNameMatcher, parseReference } from "../names.ts";
import type { Ask } from "../offers/offer-watch.ts";
import type { FindProvider } from "../offers/provider-client.ts";
import { CALLER_PROVIDER, SPACES_PROVIDER } from "../tool-set.ts";

export interface AsksOptions {
  catalogue: ReadonlyMap<string, Tool>;
  /** All providers, those of the suite first. */
  providers: readonly string[];
  find: FindProvider;
  hasSession: boolean;
}

/**
 * Whom to ask for an agent's tools: the providers of those of its sources that `use` reaches into; spaces and the caller always; every provider for its own
 * offer only if `use` names something that the agent's sources and the catalogue do not have.
 */
export function decideAsks(agent: Pick<Agent, "sources" | "tools">, options: AsksOptions): Ask[] {
  const { catalogue, providers, find, hasSession } = options;
  const use = agent.tools?.use ?? [];
  const used = agent.sources.filter(({ name }) => use.some((pattern) => reachesInto(pattern, name)));
  const bySource = Map.groupBy(used, ({ provider }) => provider);
  const declared = [...bySource].map(([provider, sources]) => ({
    provider,
    client: find(provider),
    sources: sources.map(
      ({ name, config }): Source => ({ $typeName: "toolbus.tool.v1.Source", name, ...(config && { config }) }),
    ),
  }));
  const names = new Set(agent.sources.map(({ name }) => name));
  const needsAll = use.some((pattern) => reachesFurther(pattern, names, catalogue));
  const own = providers.filter((provider) => {
    if (provider === CALLER_PROVIDER) return hasSession;
    return provider === SPACES_PROVIDER || needsAll;
  });
  return [...declared, ...own.map((provider) => ({ provider, client: find(provider), sources: [] }))];
}

function reachesInto(pattern: string, source: string): boolean {
  const { source: reached = "" } = parseReference(pattern);
  return pattern === "*" || createNameMatcher([reached])(source);
}

function reachesFurther(pattern: string, sources: ReadonlySet<string>, catalogue: ReadonlyMap<string, Tool>): boolean {
  const { source, tool } = parseReference(pattern);
  return source === undefined ? !catalogue.has(tool) : !sources.has(source);
}
