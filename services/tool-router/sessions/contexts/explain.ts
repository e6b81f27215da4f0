import { create } from "@bufbuild/protobuf";
import { ExecutionType, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import {
  ExplainStage,
  type ExplainStep,
  ExplainStepSchema,
  type ExplainToolRequest,
  type ExplainToolResponse,
  ExplainToolResponseSchema,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Soon, Validator } from "#runtime/schema/json-schema/validator.ts";
import { closestNames } from "../../tools/advice.ts";
import { parseReference } from "../../tools/names.ts";
import { aliasesOf, type Resolution, resolve } from "../../tools/resolve.ts";
import type { PinnedTool } from "../../tools/tool-set/pins/pinned-tool.ts";
import type { ToolEntry, ToolSet } from "../../tools/tool-set/tool-set.ts";
import type { Spaces } from "../spaces.ts";
import type { AgentContext } from "./agent-context.ts";
import { type AskedContextParts, withAskedContext } from "./asked-context.ts";

/** A source that is starting is waited for so long. That it starts is an explanation, too, and nobody waits for one as for a call. */
const LONGEST_START_MS = 10_000;

type Step = Pick<ExplainStep, "stage" | "finding" | "passed">;

/** ORCH-5: the whole way from a name to a decision. */
export async function explainTool(
  parts: AskedContextParts & { readonly spaces: Spaces; readonly leftUnchecked: LeftUnchecked },
  request: ExplainToolRequest,
  signal: AbortSignal,
): Promise<ExplainToolResponse> {
  const { scope, name } = request;

  async function explainIn(context: AgentContext): Promise<ExplainToolResponse> {
    const agent = context.agent.name;
    const { tools } = await parts.contexts.find(context, name, signal, LONGEST_START_MS);
    const explained = await explain(tools, name, {
      left: (schema) => parts.leftUnchecked(schema, context.principal),
      activeSpace: scope.case === "session" ? () => parts.spaces.activeSpace(scope.value.sessionId, agent) : undefined,
    });
    return { ...explained, agent };
  }

  return withAskedContext(parts, request, explainIn, signal);
}

/** What of a schema is not checked, in words. */
export type LeftUnchecked = Validator["leftUnchecked"];

export interface ExplainOptions {
  /** What of the schema of arguments is left to who runs the tool; undefined when nothing is. */
  left?: (schemaJson: string) => Soon<string | undefined>;
  /** The session's active space, empty for none; undefined outside a session. */
  activeSpace: (() => Promise<string>) | undefined;
}

export async function explain(
  tools: ToolSet,
  name: string,
  { activeSpace, left = () => undefined }: ExplainOptions,
): Promise<ExplainToolResponse> {
  const resolution = resolve(tools, name);
  const entry = resolution.kind === "found" ? resolution.entry : tools.outside(resolution.reference);
  const steps = [stepOfAlias(tools, name), stepOfResolution(tools, name, resolution)];
  if (entry !== undefined) {
    steps.push(step(ExplainStage.PROVIDER, describe(entry), true));
    steps.push(
      step(ExplainStage.AVAILABILITY, entry.unavailable || "its source can be used", entry.unavailable === ""),
    );
  }
  if (resolution.kind !== "unknown") steps.push(...stepsOfPolicy(tools, entry, resolution));
  const unchecked = entry && (await left(entry.tool.inputSchemaJson));
  if (unchecked) steps.push(step(ExplainStage.OFFER, `what cannot be checked here is left to it: ${unchecked}`, true));
  if (entry?.pin !== undefined) steps.push(stepOfPin(entry, entry.pin));
  if (entry !== undefined) steps.push(await stepOfVisibility(entry, activeSpace));
  return explanation(tools, { name, steps, entry, resolution });
}

/** Each alias on the way, since one may lead to another. */
function stepOfAlias(tools: ToolSet, name: string): Step {
  const target = tools.policy.aliases.get(name);
  return step(ExplainStage.ALIAS, target === undefined ? "it is no alias" : `it is an alias of ${target}`, true);
}

function stepOfResolution(tools: ToolSet, name: string, resolution: Resolution): Step {
  const { kind } = resolution;
  if (kind === "found")
    return step(
      ExplainStage.RESOLVE,
      `${JSON.stringify(name)} is the ${resolution.by} of ${resolution.entry.reference}`,
      true,
    );
  if (kind === "outside") return step(ExplainStage.RESOLVE, `the real name is ${resolution.reference}`, true);
  const away = tools.sources.filter(({ available }) => !available);
  const reasons = away.map(({ source, reason }) => `; ${source} cannot be used: ${reason}`).join("");
  return step(ExplainStage.RESOLVE, `no tool has this name${reasons}`, false);
}

function stepsOfPolicy(
  tools: ToolSet,
  entry: ToolEntry | undefined,
  { kind, reference }: { kind: "found" | "outside"; reference?: string },
): Step[] {
  const { policy } = tools;
  if (kind === "outside") return [stepOfUse(tools, entry, reference ?? "")];
  const { standing, decision, reference: real } = entry!;
  if (standing !== "in use")
    return [step(ExplainStage.USE, `needs no listing: ${decision.rule}`, decision.kind === "permitted")];
  const steps = [
    step(ExplainStage.USE, `the entry ${JSON.stringify(policy.entryOf("use", real))} of tools.use fits`, true),
  ];
  const allowedBy = policy.entryOf("allowed", real);
  const isRefusedByList = decision.rule === "not in tools.allowed";
  if (isRefusedByList) steps.push(step(ExplainStage.ALLOWED, "not in tools.allowed", false));
  else {
    const finding =
      allowedBy === undefined
        ? "in tools.use, and there is no tools.allowed"
        : `the entry ${JSON.stringify(allowedBy)} of tools.allowed fits`;
    steps.push(step(ExplainStage.ALLOWED, finding, true));
    if (decision.kind === "blocked" && isAsPinned(entry!)) steps.push(step(ExplainStage.OFFER, decision.rule, false));
  }
  return steps;
}

function isAsPinned({ pin }: ToolEntry): boolean {
  return pin === undefined || pin.state === "held";
}

function stepOfPin(entry: ToolEntry, { digest }: PinnedTool): Step {
  return isAsPinned(entry)
    ? step(ExplainStage.PIN, `it has the definition that was approved, ${digest}`, true)
    : step(ExplainStage.PIN, entry.decision.rule, false);
}

function stepOfUse({ policy }: ToolSet, entry: ToolEntry | undefined, reference: string): Step {
  const { source } = parseReference(reference);
  const isUnasked = entry === undefined && source !== undefined && !policy.isInUse(reference);
  const hint = isUnasked ? `, so that @${source} is not asked for its tools` : "";
  const rule = policy.ruleOutside(reference);
  return step(
    ExplainStage.USE,
    rule === "not in tools.use" ? `no entry of tools.use fits${hint}` : `it is ${rule}`,
    false,
  );
}

async function stepOfVisibility(entry: ToolEntry, activeSpace: ExplainOptions["activeSpace"]): Promise<Step> {
  if (!entry.isVisible) return step(ExplainStage.VISIBLE, "call and result appear in no space", true);
  if (activeSpace === undefined) return step(ExplainStage.VISIBLE, "a call needs an active space", true);
  const spaceId = await activeSpace();
  return spaceId === ""
    ? step(ExplainStage.VISIBLE, "a call needs an active space, and the session has none", false)
    : step(ExplainStage.VISIBLE, `call and result appear in space ${spaceId}`, true);
}

function describe({ executor, tool }: ToolEntry): string {
  switch (executor.kind) {
    case "internal":
      return "nobody runs it: the arguments are the result";
    case "gateway":
      return "the router calls its URL";
    case "outside":
      return tool.executionType === ExecutionType.SPACE
        ? "a person answers, in the active space"
        : `a service that watches for its calls answers${grantedTo(tool)}`;
    case "provider":
      return `provider ${executor.provider}${executor.source ? `, source ${executor.source.name}` : ""}`;
  }
}

function grantedTo({ grants }: Tool): string {
  if (grants === undefined) return "";
  return `, of those to whom it is granted: ${grants.principals.join(", ") || "nobody"}`;
}

function step(stage: ExplainStage, finding: string, passed: boolean): Step {
  return { stage, finding, passed };
}

interface Found {
  name: string;
  steps: Step[];
  entry: ToolEntry | undefined;
  resolution: Resolution;
}

function explanation(tools: ToolSet, { name, steps, entry, resolution }: Found): ExplainToolResponse {
  const failed = steps.find(({ passed }) => !passed);
  const isFound = resolution.kind === "found";
  const reference = entry?.reference ?? (resolution.kind === "outside" ? resolution.reference : "");
  return create(ExplainToolResponseSchema, {
    reference,
    modelName: isFound ? resolution.entry.modelName : "",
    aliases: reference === "" ? [] : aliasesOf(tools, reference),
    provider: entry?.executor.kind === "provider" ? entry.executor.provider : "",
    visible: entry?.isVisible ?? false,
    available: entry !== undefined && entry.unavailable === "",
    unavailableReason: entry?.unavailable ?? "",
    callable: failed === undefined,
    rule: failed?.finding ?? entry?.decision.rule ?? "",
    closestNames: failed === undefined ? [] : closestNames(tools, name).filter((one) => one !== entry?.modelName),
    steps: steps.map((one) => create(ExplainStepSchema, one)),
  });
}
