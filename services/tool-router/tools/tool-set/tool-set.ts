import { create } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RefusedFile } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import { type Source, type SourceStatus, SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import { Effect, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { BUILT_IN_NAMES, READ_RESULT } from "#runtime/agent-file/built-ins.ts";
import { modelNameFromReference, parseReference, reachesInto, referenceFrom } from "../names.ts";
import { blockedAsOffered, createPolicy, type Decision, type Policy } from "../policy.ts";
import { createDescriptions, type DescribedTool, isDescriptionOnly } from "./descriptions.ts";
import { type Executor, executorOfCatalogueTool, isByNameOnly, isVisible } from "./executor.ts";
import { CALLER_PROVIDER, type Offer, SPACES_PROVIDER } from "./offer.ts";
import type { PinnedTool } from "./pins/pinned-tool.ts";

/** A tool of an agent: its names, who runs it, and what policy says. */
export interface ToolEntry {
  readonly reference: string;
  readonly modelName: string;
  readonly tool: Tool;
  readonly executor: Executor;
  readonly decision: Decision;
  readonly isVisible: boolean;
  readonly effect: Effect;
  readonly standing: "built-in" | "caller" | "in use";
  /** Whether its provider has not described it yet: its schemas, its effect and its pin are not known. */
  readonly isAwaited: boolean;
  /** Why its source cannot be used; empty when it can. */
  readonly unavailable: string;
  /** Of one that the agent pins: how it stands to what was approved. */
  readonly pin?: PinnedTool;
}

export interface ToolSet {
  readonly agent: string;
  readonly policy: Policy;
  readonly byReference: ReadonlyMap<string, ToolEntry>;
  readonly byModelName: ReadonlyMap<string, ToolEntry>;
  /** The files of `refused`, too. */
  readonly sources: readonly SourceStatus[];
  /** The files that would define tools which the agent uses, and are refused, by the tool's name. */
  readonly refused: ReadonlyMap<string, SourceStatus>;
  /** Whether the name is a tool's at all, in use or not. */
  exists(reference: string): boolean;
  /** A tool that is known, and not in use: as it would be, but for that. */
  outside(reference: string): ToolEntry | undefined;
}

/**
 * All tools of an agent. Where two are called the same, the first stands: built-ins, then the catalogue, then declared
 * sources, then the caller, then what providers offer by themselves.
 */
export function createToolSet(
  agent: Pick<Agent, "name" | "tools" | "sources">,
  catalogue: ReadonlyMap<string, Tool>,
  offers: readonly Offer[],
  refusedFiles: ReadonlyMap<string, RefusedFile> = new Map(),
): ToolSet {
  const policy = createPolicy(agent.name, agent.tools, (name) => isByNameOnly(catalogue.get(name)));
  const byReference = new Map<string, ToolEntry>();
  const byModelName = new Map<string, ToolEntry>();
  const known = new Map<string, Candidate>();
  const add = (found: Candidate) => {
    if (!known.has(found.reference)) known.set(found.reference, found);
    if (found.standing !== "caller" && !policy.isInUse(found.reference)) return;
    const entry = entryFrom(found, policy);
    if (byReference.has(entry.reference) || byModelName.has(entry.modelName)) return;
    byReference.set(entry.reference, entry);
    byModelName.set(entry.modelName, entry);
  };
  const describe = createDescriptions(offers);
  const declaredNames = new Set(offers.flatMap((offer) => [...offer.declared.keys()]));
  const offered = offers.flatMap((offer) => candidatesOfOffer(offer, declaredNames));
  for (const one of offered.filter(({ standing }) => standing === "built-in")) add(one);
  for (const tool of [...catalogue.values()].filter(({ name }) => !BUILT_IN_NAMES.has(name))) {
    const executor = executorOfCatalogueTool(tool);
    add({ reference: tool.name, ...describe(tool, executor), executor, standing: "in use", isDeclared: false });
  }
  for (const one of offered.filter(({ isDeclared }) => isDeclared)) add(one);
  for (const one of offered.filter(({ standing }) => standing === "caller")) add(one);
  for (const one of offered) add(one);
  if (byReference.size === 1 && byReference.delete(READ_RESULT)) byModelName.delete(READ_RESULT); // no results to read
  const refused = new Map(
    [...refusedFiles]
      .filter(([name]) => !known.has(name) && policy.isInUse(name))
      .map(([name, { file, faults }]) => [name, statusOf(file, `is refused: ${faults.join("; ")}`)]),
  );
  const sourceNames = new Set(agent.sources.map(({ name }) => name));
  // the tools of a source into which `use` does not reach are not followed, and none of them is in use
  const isOfUnusedSource = (reference: string) => {
    const { source } = parseReference(reference);
    return source !== undefined && sourceNames.has(source) && !declaredNames.has(source);
  };
  return {
    agent: agent.name,
    policy,
    byReference,
    byModelName,
    sources: [...statuses(offers, agent.tools?.use ?? [], declaredNames), ...refused.values()],
    refused,
    exists: (reference) => known.has(reference) || isOfUnusedSource(reference),
    outside(reference) {
      const found = byReference.has(reference) ? undefined : known.get(reference);
      return found && entryFrom(found, policy);
    },
  };
}

interface Candidate extends DescribedTool, Pick<ToolEntry, "reference" | "executor" | "standing"> {
  isDeclared: boolean;
  fault?: string | undefined;
}

function candidatesOfOffer(offer: Offer, declaredNames: ReadonlySet<string>): Candidate[] {
  const isDeclared = offer.declared.size > 0;
  // calls wait for a source that is starting
  const away = offer.sources.filter(({ available, starting }) => !available && !starting);
  const reasons = new Map(away.map((one) => [one.source, one.reason]));
  const candidates: Candidate[] = [];
  for (const one of offer.tools) {
    const { source: name, tool, resumable: isResumable } = one;
    if (tool === undefined || isDeclared !== declaredNames.has(name)) continue;
    const source = offer.declared.get(name);
    if (isDeclared && source === undefined) continue; // a source that this provider was not asked for
    const standing = standingOf(offer.provider, name, tool.name);
    if (standing === undefined || isDescriptionOnly(tool, offer.provider)) continue;
    const ownSource: Source | undefined =
      name === "" ? undefined : { $typeName: "toolbus.tool.v1.Source", name, fromRun: false };
    candidates.push({
      reference: referenceFrom(name, tool.name),
      tool,
      executor: {
        ...{ kind: "provider", provider: offer.provider, source: source ?? ownSource, tool: tool.name },
        ...(isResumable && { isResumable }),
      },
      standing,
      isDeclared,
      isAwaited: false,
      unavailable: offer.failure || (reasons.get(name) ?? ""),
      fault: offer.faults?.get(one),
    });
  }
  return candidates;
}

/** Only spaces may offer what is named like a built-in (TOOL-12). */
function standingOf(provider: string, source: string, tool: string): ToolEntry["standing"] | undefined {
  const isReserved = source === "" && BUILT_IN_NAMES.has(tool);
  if (isReserved) return provider === SPACES_PROVIDER ? "built-in" : undefined;
  return source === "" && provider === CALLER_PROVIDER ? "caller" : "in use";
}

function entryFrom(found: Candidate, policy: Policy): ToolEntry {
  const { reference, tool, executor, standing, isAwaited, unavailable } = found;
  return {
    reference,
    modelName: modelNameFromReference(reference, policy.aliases),
    tool,
    executor,
    decision: decisionOn(found, policy),
    isVisible: standing !== "built-in" && isVisible(tool, executor),
    effect: effectOf(tool, executor),
    standing,
    isAwaited,
    unavailable,
  };
}

/** What policy refuses is refused by policy; only what it permits can fail by how it was offered. */
function decisionOn({ reference, standing, fault }: Candidate, policy: Policy): Decision {
  const decision: Decision =
    standing === "caller" ? { kind: "permitted", rule: "tool of the session's caller" } : policy.decide(reference);
  if (fault === undefined || decision.kind === "blocked") return decision;
  return blockedAsOffered(policy.agent, reference, fault);
}

function effectOf(tool: Tool, executor: Executor): Effect {
  if (executor.kind === "internal") return Effect.PURE;
  if (tool.effect !== Effect.UNSPECIFIED) return tool.effect;
  if (tool.annotations?.readOnlyHint) return Effect.PURE;
  return tool.annotations?.idempotentHint ? Effect.IDEMPOTENT : Effect.AT_MOST_ONCE;
}

/** What cannot be used of a provider's own sources matters to who would use it, and is told once of a source that is declared. */
function statuses(offers: readonly Offer[], use: readonly string[], declaredNames: ReadonlySet<string>) {
  const matters = ({ source, available }: SourceStatus) =>
    available || (!declaredNames.has(source) && use.some((one) => reachesInto(one, source)));
  return offers.flatMap((offer) => {
    if (offer.failure === "") return offer.declared.size > 0 ? offer.sources : offer.sources.filter(matters);
    const names = offer.declared.size > 0 ? [...offer.declared.keys()] : [offer.provider];
    const since = offer.failedSince === undefined ? "" : ` (since ${offer.failedSince})`;
    return names.map((source) => statusOf(source, offer.failure + since));
  });
}

function statusOf(source: string, reason: string): SourceStatus {
  return create(SourceStatusSchema, { source, reason });
}
