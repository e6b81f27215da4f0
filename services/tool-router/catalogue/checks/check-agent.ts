import type { Agent, Limits } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { BUILT_IN_GROUPS, BUILT_IN_NAMES } from "#runtime/agent-file/built-ins.ts";
import { nearest } from "#runtime/failure/spelling/nearest.ts";
import { currencyMismatches } from "#runtime/money/one-currency.ts";
import { createNameMatcher, type NameMatcher, parseReference } from "../../tools/names.ts";
import { createPolicy, followAlias } from "../../tools/policy.ts";

export interface AgentCheck {
  hasTool: (name: string) => boolean;
  /** Whether the catalogue has a tool that patterns reach, and that fits. */
  hasToolLike: (matches: NameMatcher) => boolean;
  /** The file that would define the tool, and is refused. */
  refusedFile: (tool: string) => string | undefined;
  /** ORCH-3: whether no pattern reaches the catalogue's tool. */
  isByNameOnly: (name: string) => boolean;
  hasProvider: (name: string) => boolean;
  findAgent: (name: string) => Agent | undefined;
  /** Sources that are there without being declared, as far as is known. */
  ownSources: OwnSources;
}

export interface OwnSources {
  names(): ReadonlySet<string>;
}

/** What makes an agent unusable, and what its operator should know (ORCH-3, ORCH-5); each with its path. */
export interface AgentFindings {
  faults: string[];
  warnings: string[];
}

export function checkAgent(agent: Agent, check: AgentCheck): AgentFindings {
  const faults = [
    ...faultsOfSources(agent, check),
    ...faultsOfAliases(agent, check),
    ...faultsOfReferences(agent),
    ...faultsOfBuiltIns(agent),
    ...faultsOfPrices(agent),
  ];
  return { faults, warnings: warningsOf(agent, check) };
}

function faultsOfSources(agent: Agent, { hasProvider }: AgentCheck): string[] {
  const seen = new Set<string>();
  return agent.sources.flatMap(({ name, provider }, index) => {
    const faults: string[] = [];
    if (seen.has(name)) faults.push(`sources[${index}].name: ${JSON.stringify(name)} is there twice`);
    seen.add(name);
    if (!hasProvider(provider))
      faults.push(`sources[${index}].provider: there is no provider ${JSON.stringify(provider)}`);
    return faults;
  });
}

function faultsOfAliases(agent: Agent, { hasTool }: AgentCheck): string[] {
  const aliases = agent.tools?.aliases ?? {};
  const sources = new Set(agent.sources.map(({ name }) => name));
  return Object.keys(aliases).flatMap((alias) => {
    const path = `tools.aliases.${alias}`;
    if (BUILT_IN_NAMES.has(alias)) return [`${path}: ${alias} is the name of a built-in`];
    if (hasTool(alias)) return [`${path}: ${alias} is the name of a tool`];
    const end = followAlias(aliases, alias);
    if (end.kind !== "reference") return [`${path}: leads ${end.kind} (${end.path.slice(0, 8).join(" → ")})`];
    const { source, tool } = parseReference(end.reference);
    const isBareTool = hasTool(tool) || BUILT_IN_NAMES.has(tool) || toolsOfSubAgents(agent).includes(tool);
    const leadsSomewhere = source === undefined ? isBareTool : sources.has(source);
    return leadsSomewhere ? [] : [`${path}: points to ${JSON.stringify(end.reference)}, which does not exist`];
  });
}

/** `@files` without a tool, or an empty entry, is a slip of the pen. */
function faultsOfReferences(agent: Agent): string[] {
  const { use = [], allowed } = agent.tools ?? {};
  return Object.entries({ use, allowed: allowed?.names ?? [] }).flatMap(([list, entries]) =>
    entries.flatMap((entry, index) => {
      const isReference = entry !== "" && (!entry.startsWith("@") || parseReference(entry).source !== undefined);
      return isReference
        ? []
        : [`tools.${list}[${index}]: ${JSON.stringify(entry)} is neither a name nor @source/tool`];
    }),
  );
}

/** PROD-4: what is chosen is a group of built-ins or one of them. */
function faultsOfBuiltIns({ tools }: Agent): string[] {
  const names = tools?.builtins?.names ?? [];
  return names.flatMap((name, index) => {
    if (BUILT_IN_GROUPS.has(name) || BUILT_IN_NAMES.has(name)) return [];
    const candidates = [...BUILT_IN_GROUPS.keys(), ...BUILT_IN_NAMES].map((one) => ({ name: one, spellings: [one] }));
    const [closest] = nearest(name, candidates);
    const advice =
      closest === undefined ? `the groups are ${[...BUILT_IN_GROUPS.keys()].join(", ")}` : `did you mean "${closest}"?`;
    return [`tools.builtins[${index}]: ${JSON.stringify(name)} is no built-in and no group of them; ${advice}`];
  });
}

/** LOOP-12: a budget that nothing counts towards, or that nobody can hold a price against, would fail each run. */
function faultsOfPrices(agent: Agent): string[] {
  const { limits, model, fallbackModel } = agent;
  const mismatches = currencyMismatches(agent).map(
    ({ other, agents }) =>
      `${other.path}.currencyCode: is ${other.currencyCode}, but ${agents.path} is in ${agents.currencyCode}: an agent has one currency`,
  );
  if (limits?.maxCost === undefined) return mismatches;
  const unpriced = Object.entries({ model, fallbackModel }).flatMap(([path, config]) =>
    config === undefined || config.price !== undefined
      ? []
      : [`${path}.price: limits.maxCost wants one, 0 for what is free`],
  );
  return [...mismatches, ...unpriced];
}

/** Why an entry of `tools.use` names nothing that the catalogue or the agent's sources could have; undefined when it does. */
function missingOf(entry: string, agent: Agent, check: AgentCheck): string | undefined {
  const { hasTool, hasToolLike, ownSources } = check;
  const { source, tool } = parseReference(entry);
  if (source !== undefined) {
    const names = [...agent.sources.map(({ name }) => name), ...ownSources.names()];
    const isDeclared = names.some(createNameMatcher([source]));
    return isDeclared ? undefined : `no source ${JSON.stringify(source)} is declared`;
  }
  const ofSubAgents = toolsOfSubAgents(agent);
  if (!entry.includes("*")) {
    if (hasTool(tool) || ofSubAgents.includes(tool)) return undefined;
    const refused = check.refusedFile(tool);
    return `there is no tool ${JSON.stringify(tool)}${refused === undefined ? "" : `, as ${refused} is refused`}`;
  }
  const matches = createNameMatcher([entry]);
  const isFilled = (entry === "*" && agent.sources.length > 0) || hasToolLike(matches) || ofSubAgents.some(matches);
  return isFilled ? undefined : `no tool is like ${JSON.stringify(entry)}`;
}

/** The tools by which the agent calls the agents that it may call (LOOP-17). */
function toolsOfSubAgents({ subAgents }: Agent): string[] {
  return subAgents.map(({ agent }) => `agent_${agent}`);
}

/** Why the call of another agent would be refused now; that agent may be mended without this one. */
function doubtOfCalled({ limits }: Agent, name: string, { findAgent }: AgentCheck): string | undefined {
  const called = findAgent(name);
  if (called === undefined) return `there is no agent ${JSON.stringify(name)}`;
  if (limits?.maxCost === undefined) return undefined;
  const { currencyCode } = limits.maxCost;
  for (const model of [called.model, called.fallbackModel]) {
    if (model === undefined || model.price?.currencyCode === currencyCode) continue;
    const fault = model.price === undefined ? "has no price" : `has its price in ${model.price.currencyCode}`;
    return `limits.maxCost is in ${currencyCode}, but its model "${model.model}" ${fault}, so that it cannot be called`;
  }
  return undefined;
}

function warningsOf(agent: Agent, check: AgentCheck): string[] {
  const { use = [], allowed: { names: allowed = [] } = {} } = agent.tools ?? {};
  const policy = createPolicy(agent.name, agent.tools, check.isByNameOnly);
  const warnings = use.flatMap((entry, index) => {
    const missing = missingOf(entry, agent, check);
    return missing === undefined
      ? []
      : [
          `tools.use[${index}]: ${missing}; only what a caller offers, or a hosted module, a worker or a provider by itself, can fill it`,
        ];
  });
  if (use.length > 0 && warnings.length === use.length) warnings.push("tools.use: no tool resolves");
  const isEmpty = use.length === 0 && (agent.sources.length > 0 || allowed.length > 0);
  if (isEmpty) warnings.push("tools.use: is empty, so that no tool of a source or the catalogue can be called");
  for (const [index, { agent: name, limits }] of agent.subAgents.entries()) {
    const doubt = doubtOfCalled(agent, name, check);
    if (doubt !== undefined) warnings.push(`subAgents[${index}].agent: ${doubt}`);
    const called = check.findAgent(name);
    if (called === undefined) continue;
    warnings.push(...idleStops(limits, called, check, [`subAgents[${index}].`, ` of agent ${JSON.stringify(name)}`]));
  }
  for (const [index, tool] of toolsOfSubAgents(agent).entries()) {
    if (!policy.isInUse(tool))
      warnings.push(`subAgents[${index}]: ${tool} is not in tools.use, so that it cannot be called`);
  }
  const isInUse = (entry: string) => policy.isInUse(policy.aliases.get(entry) ?? entry);
  for (const [index, entry] of allowed.entries()) {
    if (!entry.includes("*") && !isInUse(entry)) warnings.push(notInUse(`tools.allowed[${index}]`, entry));
  }
  return [...warnings, ...idleStops(agent.limits, agent, check)];
}

/** Tools to stop at that the agent does not have. */
function idleStops(
  limits: Limits | undefined,
  { name, tools }: Agent,
  { isByNameOnly }: AgentCheck,
  [before, behind] = ["", ""],
): string[] {
  const { isInUse, aliases } = createPolicy(name, tools, isByNameOnly);
  return (limits?.stopAtTools ?? []).flatMap((entry, index) => {
    const asModelsHaveIt = `@${entry.replace("__", "/")}`;
    if ([entry, asModelsHaveIt].some((one) => isInUse(aliases.get(one) ?? one))) return [];
    const missing = notInUse(`${before}limits.stopAtTools[${index}]`, entry);
    return [`${missing}${behind}; only what a client or a caller offers can be called so`];
  });
}

function notInUse(path: string, entry: string): string {
  return `${path}: ${JSON.stringify(entry)} is not in tools.use`;
}
