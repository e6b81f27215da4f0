/**
 * Sources that one run brings along. To the router they are sources like those of the agent's configuration, in a context of the
 * run's own: the agent as it would be if its `use` named them. Its `allowed` narrows them like all others.
 */

import { create } from "@bufbuild/protobuf";
import { type Agent, AgentSchema, AgentSourceSchema, ToolUseSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RunSource } from "#gen/toolbus/tool/v1/source_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { parseReference, referenceFrom } from "../../../tools/names.ts";

/** A run and what it brings. */
export interface RunSources {
  readonly runId: string;
  readonly runSources: readonly RunSource[];
  /** Where in the request they stand: the beginning of their path. */
  readonly place?: string;
}

/** Refuses names that the agent's configuration has for a source, and providers that take no sources of runs. */
export function agentOfRun(
  agent: Agent,
  { runSources = [], place = "" }: Partial<RunSources>,
  takesRunSources: (provider: string) => boolean,
): Agent {
  const faults = [
    ...faultsOfNames(agent, runSources),
    ...runSources.flatMap(({ name, provider }) =>
      takesRunSources(provider)
        ? []
        : [`the run's source ${JSON.stringify(name)}: provider ${provider} takes none of runs`],
    ),
  ];
  if (faults.length > 0) {
    const fieldViolations = faults.map((message) => ({ field: `${place}run_sources`, message }));
    refuse("invalid_argument", faults.join("; "), { reason: "INVALID_REQUEST", fieldViolations });
  }
  const sources = runSources.map(({ name, provider, config }) =>
    create(AgentSourceSchema, { name, provider, ...(config && { config }) }),
  );
  const tools = agent.tools ?? create(ToolUseSchema);
  const brought = runSources.map(({ name }) => referenceFrom(name, "*"));
  return create(AgentSchema, {
    ...agent,
    sources: [...agent.sources, ...sources],
    tools: { ...tools, use: [...tools.use, ...brought] },
  });
}

function faultsOfNames({ name: agent, sources, tools }: Agent, runSources: readonly RunSource[]): string[] {
  const references = [...(tools?.use ?? []), ...(tools?.allowed?.names ?? []), ...Object.values(tools?.aliases ?? {})];
  const named = new Set(references.flatMap((reference) => parseReference(reference).source ?? []));
  const taken = new Set([...sources.map(({ name }) => name), ...named]);
  return runSources.flatMap(({ name }, index) => {
    const own = JSON.stringify(name);
    if (taken.has(name))
      return [`the run's source ${own} is named like the source ${own} of agent ${JSON.stringify(agent)}`];
    const isTwice = runSources.findIndex((other) => other.name === name) !== index;
    return isTwice ? [`two of the run's sources are called ${own}`] : [];
  });
}
