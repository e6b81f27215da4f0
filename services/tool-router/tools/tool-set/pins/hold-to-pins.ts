import { create } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { StoredPin } from "#gen/toolbus/internal/tool/v1/stored_pin_pb.ts";
import { type SourceStatus, SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { blockedAsOffered } from "../../policy.ts";
import type { ToolEntry, ToolSet } from "../tool-set.ts";
import { definitionOf, digestOf } from "./definition.ts";
import type { Approvals } from "./pinned-tool.ts";

/*
 * PIN-1  A pinned tool is called as it was when it was allowed, or not at all.
 * PIN-2  Of one that has changed nothing is told to a model but what was approved: what stands in the new definition may be written to
 *        mislead it. It stays listed, with the approved definition, and each call is refused with the way out.
 *        For the same reason a model is told none of the instructions of a source that is pinned: nobody approves them.
 * PIN-3  What was seen first counts as approved once it is recorded, so that all routers agree on it.
 */

export function holdToPins(set: ToolSet, agent: Pick<Agent, "sources" | "tools">, approvals: Approvals): ToolSet {
  const sources = new Set(agent.sources.filter(({ pin }) => pin).map(({ name }) => name));
  const pins = new Map(Object.entries(agent.tools?.pins ?? {}));
  if (sources.size + pins.size === 0) return set;
  const pinOf = ({ reference, executor }: ToolEntry) => {
    const source = executor.kind === "provider" ? executor.source?.name : undefined;
    return pins.get(reference) ?? (source !== undefined && sources.has(source) ? "" : undefined);
  };
  const entries = [...set.byReference.values()].map((entry) => {
    const wanted = pinOf(entry);
    return wanted === undefined ? entry : heldEntry(set.agent, entry, wanted, approvals(set.agent, entry.reference));
  });
  return {
    ...set,
    byReference: new Map(entries.map((entry) => [entry.reference, entry])),
    byModelName: new Map(entries.map((entry) => [entry.modelName, entry])),
    sources: statusesWith(set.sources, entries).map(
      (status) => (sources.has(status.source) ? { ...status, instructions: "" } : status), // PIN-2
    ),
  };
}

function heldEntry(agent: string, entry: ToolEntry, wanted: string, stored: StoredPin | undefined): ToolEntry {
  const { reference, tool: offered, decision } = entry;
  const digest = digestOf(offered);
  const approved = wanted || stored?.approvedDigest;
  if (approved === digest) return { ...entry, pin: { state: "held", offered, digest, wanted } };
  const state = approved === undefined ? "unrecorded" : "changed";
  // a provider that is away does not say what its tool is: that is no change
  const fault = entry.unavailable
    ? `it is pinned, and cannot be compared with what was approved: ${entry.unavailable}`
    : faultOf({ agent, digest, wanted, approved });
  const shown = stored?.approvedDigest === approved ? stored?.approved : undefined;
  return {
    ...entry,
    pin: { state, offered, digest, wanted },
    tool: withDefinition(offered, shown),
    decision: decision.kind === "blocked" ? decision : blockedAsOffered(agent, reference, fault),
  };
}

interface Deviation {
  agent: string;
  digest: string;
  wanted: string;
  approved: string | undefined;
}

function faultOf({ agent, digest, wanted, approved }: Deviation): string {
  if (approved === undefined) return "it is pinned, and what was seen first could not be recorded yet";
  if (wanted !== "")
    return `it is pinned to the definition ${approved}, and offered as ${digest}: once it is looked at, tools.pins of the agent can name that`;
  const change = `its definition has changed since it was approved, from ${approved} to ${digest}`;
  return `${change}: an operator looks at it and approves it with "toolbus tools approve ${agent}"`;
}

/** PIN-2: a tool of which no approved definition is known has none. */
function withDefinition(offered: Tool, approved: Tool | undefined): Tool {
  const { annotations: _, ...rest } = offered;
  const nothing = { description: "", inputSchemaJson: "", outputSchemaJson: "" };
  return { ...rest, ...(approved === undefined ? nothing : definitionOf(approved)) };
}

/** A source of which a tool has changed is not as it was allowed. */
function statusesWith(sources: readonly SourceStatus[], entries: readonly ToolEntry[]): SourceStatus[] {
  const changed = new Map<string, string[]>();
  for (const { pin, executor, reference } of entries) {
    const source = executor.kind === "provider" ? executor.source?.name : undefined;
    if (pin?.state === "changed" && source !== undefined)
      changed.set(source, [...(changed.get(source) ?? []), reference]);
  }
  const others = sources.filter(({ source, available }) => !available || !changed.has(source));
  const known = new Set(others.map(({ source }) => source));
  const told = [...changed].filter(([source]) => !known.has(source));
  return [...others, ...told.map(([source, references]) => statusOf(source, references))];
}

function statusOf(source: string, references: readonly string[]): SourceStatus {
  const reason = `pinned tools have changed since they were approved: ${references.join(", ")}`;
  return create(SourceStatusSchema, { source, reason });
}
