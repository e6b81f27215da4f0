import type { ToolUse } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { BUILT_IN_NAMES, chosenBuiltIns } from "#runtime/agent-file/built-ins.ts";
import { createNameMatcher, type NameMatcher } from "./names.ts";

/** Whether a call may go on, by which rule, and in words that a model can act on. */
export type Decision = { kind: "permitted"; rule: string } | { kind: "blocked"; rule: string; message: string };

export interface Policy {
  readonly agent: string;
  /** Alias to the real reference at the end of its chain; aliases that lead nowhere or in a circle are left out. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly isInUse: NameMatcher;
  /** The rule by which a tool that is not in use may not be called. */
  ruleOutside(reference: string): string;
  /** The entry of a list that fits a reference, for whoever wants to know which one it was. */
  entryOf(list: "use" | "allowed", reference: string): string | undefined;
  decide(reference: string): Decision;
}

/**
 * ORCH-2: nothing outside `use` may be called; `allowed` narrows that, by real name, alias or pattern.
 * ORCH-3: what touches this machine is in use only where `use` holds its very name.
 * PROD-4: of the built-ins those are in use, without being listed, that `builtins` and `allowed` choose.
 */
export function createPolicy(
  agent: string,
  toolUse: Pick<ToolUse, "use" | "allowed" | "aliases" | "builtins"> | undefined,
  isByNameOnly: NameMatcher = () => false,
): Policy {
  const aliases = realNames(toolUse?.aliases ?? {});
  const allowed = toolUse?.allowed?.names;
  const use = toolUse?.use ?? [];
  const isLike = createNameMatcher(use);
  const builtIns = chosenBuiltIns(toolUse ?? {}, (name) => aliases.get(name) ?? name);
  const isInUse = (reference: string) => {
    if (BUILT_IN_NAMES.has(reference)) return builtIns.has(reference);
    return isByNameOnly(reference) ? use.includes(reference) : isLike(reference);
  };
  const ruleOutside = (reference: string) => {
    if (BUILT_IN_NAMES.has(reference)) return NOT_CHOSEN;
    return isLike(reference) ? BY_NAME_ONLY : "not in tools.use";
  };
  const isAllowed =
    allowed === undefined ? () => true : createNameMatcher(allowed.map((entry) => aliases.get(entry) ?? entry));
  const allowedRule = allowed === undefined ? "in tools.use, and there is no tools.allowed" : "in tools.allowed";
  return {
    agent,
    aliases,
    isInUse,
    ruleOutside,
    entryOf: (list, reference) =>
      ((list === "use" ? use : allowed) ?? []).find((entry) => {
        if (list === "use" && isByNameOnly(reference)) return entry === reference;
        return createNameMatcher([aliases.get(entry) ?? entry])(reference);
      }),
    decide(reference) {
      if (!isInUse(reference)) return blocked(agent, reference, ruleOutside(reference));
      if (BUILT_IN_NAMES.has(reference)) return { kind: "permitted", rule: "built-in of the agent" };
      if (!isAllowed(reference)) return blocked(agent, reference, "not in tools.allowed");
      return { kind: "permitted", rule: allowedRule };
    },
  };
}

const NOT_CHOSEN = "a built-in that tools.builtins or tools.allowed does not choose";
const BY_NAME_ONLY = "not named in tools.use, and no pattern reaches a tool of kind builtin";

/** LOOP-3: what the run's own `allowed_tools` leaves of what policy permits. */
export function narrow(decision: Decision, calledName: string, isListed: boolean): Decision {
  if (decision.kind === "blocked" || isListed) return decision;
  const message = `tool ${JSON.stringify(calledName)} is not in the allowed_tools list`;
  return { kind: "blocked", rule: "not in allowed_tools", message };
}

export function blocked(agent: string, tool: string, rule: string): Extract<Decision, { kind: "blocked" }> {
  const message = `Agent ${JSON.stringify(agent)} may not call tool ${JSON.stringify(tool)}: it is ${rule}.`;
  return { kind: "blocked", rule, message };
}

/** A tool that cannot be called as it was offered, whatever `use` and `allowed` say. */
export function blockedAsOffered(agent: string, tool: string, fault: string): Decision {
  const message = `Agent ${JSON.stringify(agent)} may not call tool ${JSON.stringify(tool)}: ${fault}.`;
  return { kind: "blocked", rule: fault, message };
}

/** TOOL-11. An agent without `enter_space` is in the space that whoever opened its session entered it into. */
export function blockedOutsideSpace(tool: string, canEnter: boolean): Decision {
  const way = canEnter ? "Call enter_space first." : "Whoever opened your session has to enter one for you.";
  const message = `Tool ${JSON.stringify(tool)} is visible but you are not in a space. ${way}`;
  return { kind: "blocked", rule: "visible without an active space", message };
}

function realNames(aliases: Readonly<Record<string, string>>): Map<string, string> {
  const found = new Map<string, string>();
  for (const alias of Object.keys(aliases)) {
    if (BUILT_IN_NAMES.has(alias)) continue; // TOOL-12: refused when the agent is loaded, and without effect in any case
    const target = followAlias(aliases, alias);
    if (target.kind === "reference") found.set(alias, target.reference);
  }
  return found;
}

/** Where an alias leads, through other aliases. */
export function followAlias(
  aliases: Readonly<Record<string, string>>,
  alias: string,
): { kind: "reference"; reference: string } | { kind: "in a circle" | "through too many aliases"; path: string[] } {
  const path = new Set([alias]);
  for (let name = alias; ; path.add(name)) {
    const next = Object.hasOwn(aliases, name) ? aliases[name]! : undefined;
    if (next === undefined) return { kind: "reference", reference: name };
    if (path.has(next)) return { kind: "in a circle", path: [...path, next] };
    if (path.size === 32) return { kind: "through too many aliases", path: [...path] };
    name = next;
  }
}
