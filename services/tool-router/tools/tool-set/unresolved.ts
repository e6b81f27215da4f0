import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { createNameMatcher } from "../names.ts";
import type { ToolSet } from "./tool-set.ts";

/** ORCH-5: entries of `tools.use` that name no tool, as far as those that were asked have answered. */
export function unresolvedOf(tools: ToolSet, agent: Pick<Agent, "tools">): string[] {
  const references = [...tools.byReference.values()]
    .filter(({ standing }) => standing === "in use")
    .map(({ reference }) => reference);
  const unresolved = (agent.tools?.use ?? []).flatMap((entry, index) =>
    references.some(createNameMatcher([entry])) ? [] : [`tools.use[${index}]: ${JSON.stringify(entry)} names no tool`],
  );
  const hasNone = references.length === 0 && (agent.tools?.use.length ?? 0) > 0;
  return hasNone ? [...unresolved, "no tool of tools.use resolves"] : unresolved;
}
