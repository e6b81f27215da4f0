import { argumentsRefused } from "#runtime/schema/json-schema/tool-schema.ts";
import { alternatives } from "./advice.ts";
import { parseReference } from "./names.ts";
import { blocked, type Decision } from "./policy.ts";
import type { Resolution } from "./resolve.ts";
import type { ToolEntry, ToolSet } from "./tool-set/tool-set.ts";

type Blocked = Extract<Decision, { kind: "blocked" }>;

/** A refusal by policy, with what the model may call instead. */
export function withAlternatives(decision: Blocked, tools: ToolSet, name: string): Blocked {
  const isOwnList = decision.rule === "not in allowed_tools"; // its words are fixed (LOOP-3)
  return isOwnList ? decision : { ...decision, message: `${decision.message} ${alternatives(tools, name)}` };
}

/** A name that is no tool's, or that of a tool which the agent does not use. */
export function refusalOfMissing(
  tools: ToolSet,
  missing: Exclude<Resolution, { kind: "found" }>,
  name: string,
): Blocked {
  if (missing.kind === "outside") {
    return withAlternatives(
      blocked(tools.agent, missing.reference, tools.policy.ruleOutside(missing.reference)),
      tools,
      name,
    );
  }
  const [tool, agent] = [JSON.stringify(name), JSON.stringify(tools.agent)];
  const refused = tools.refused.get(missing.reference);
  if (refused !== undefined) {
    const message = `Tool ${tool} of agent ${agent} cannot be used: ${refused.source} ${refused.reason}.`;
    return { kind: "blocked", rule: "the tool's file is refused", message: `${message} ${alternatives(tools, name)}` };
  }
  const files = new Set([...tools.refused.values()].map(({ source }) => source)); // which have no tools but those
  const away = tools.sources.filter(({ available, source }) => !available && !files.has(source));
  if (away.length === 0 || isOfUsableSource(tools, name)) {
    const message = `There is no tool ${tool} for agent ${agent}. ${alternatives(tools, name)}`;
    return { kind: "blocked", rule: "no such tool", message };
  }
  const named = away.filter(({ source }) => isNameOf(source, name));
  const reasons = new Set((named.length > 0 ? named : away).map(({ source, reason }) => `${source}: ${reason}`));
  const message = `Tool ${tool} of agent ${agent} is unavailable, if it exists. Sources that cannot be used: ${[...reasons].join("; ")}.`;
  return {
    kind: "blocked",
    rule: "no tool of a source that can be used",
    message: `${message} ${alternatives(tools, name)}`,
  };
}

/** By its reference, or by the name that models see. */
const isNameOf = (source: string, name: string) => name.startsWith(`@${source}/`) || name.startsWith(`${source}__`);

/** Of a source that can be asked: what it does not offer does not exist. */
function isOfUsableSource({ byReference }: ToolSet, name: string): boolean {
  return [...byReference.values()].some(({ reference, unavailable }) => {
    const { source } = parseReference(reference);
    return source !== undefined && unavailable === "" && isNameOf(source, name);
  });
}

/** Arguments that do not fit what the tool says of them. */
export const UNFIT = "arguments do not fit the tool's schema";
/** Arguments that are too large for a person or a watcher to get them whole. */
export const TOO_LARGE = "arguments are too large to be handed outside";

export function refusalOfArguments({ reference }: ToolEntry, rule: string, fault: string): Blocked {
  return { kind: "blocked", rule, message: argumentsRefused(reference, fault) };
}
