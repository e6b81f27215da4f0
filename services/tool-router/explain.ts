import { create } from "@bufbuild/protobuf";
import {
  type ExplainStep,
  ExplainStepSchema,
  type ExplainToolRequest,
  type ExplainToolResponse,
  ExplainToolResponseSchema,
} from "#gen/toolbus/router/v1/tool_router_pb.ts";
import type { Contexts } from "./contexts.ts";
import type { Executor } from "./execute/executor.ts";
import type { Spaces } from "./messages.ts";
import { resolve } from "./resolve.ts";
import type { ToolEntry, ToolSet } from "./tool-set.ts";

type Step = Pick<ExplainStep, "stage" | "finding" | "passed">;

/** ORCH-5: the whole way from a name to a decision. */
export async function explainTool(
  { contexts, spaces }: { contexts: Contexts; spaces: Spaces },
  request: ExplainToolRequest,
  signal: AbortSignal,
): Promise<ExplainToolResponse> {
  const context = await contexts.of(request);
  const tools = await contexts.tools(context, signal);
  const resolution = resolve(tools, request.name);
  const steps = [stepOfAlias(tools, request.name)];
  if (resolution.kind !== "found") {
    const isKnown = resolution.kind === "outside";
    steps.push(
      step("resolve", isKnown ? `the real name is ${resolution.reference}` : "no tool has this name", isKnown),
    );
    if (isKnown) steps.push(step("use", "no entry of tools.use fits", false));
    return explanation(steps, { reference: isKnown ? resolution.reference : "" });
  }
  const { entry } = resolution;
  steps.push(step("resolve", `${JSON.stringify(request.name)} is the ${resolution.by} of ${entry.reference}`, true));
  steps.push(step("provider", describe(entry.executor), true));
  steps.push(step("availability", entry.unavailable || "its source can be used", entry.unavailable === ""));
  steps.push(...stepsOfPolicy(tools, entry));
  steps.push(await stepOfVisibility(entry, spaces, request.sessionId));
  const { reference, isVisible, unavailable, executor } = entry;
  const provider = executor.kind === "provider" ? executor.provider : "";
  return explanation(steps, {
    reference,
    provider,
    visible: isVisible,
    available: unavailable === "",
    rule: entry.decision.rule,
  });
}

function stepOfAlias(tools: ToolSet, name: string): Step {
  const target = tools.policy.aliases.get(name);
  return step("alias", target === undefined ? "it is no alias" : `it is an alias of ${target}`, true);
}

function stepsOfPolicy(tools: ToolSet, { standing, decision, reference }: ToolEntry): Step[] {
  if (standing !== "in use") return [step("use", `needs no listing: ${decision.rule}`, true)];
  const isInUse = tools.policy.isInUse(reference);
  const isAllowed = decision.kind === "permitted";
  return [
    step("use", isInUse ? "an entry of tools.use fits" : "no entry of tools.use fits", isInUse),
    step("allowed", decision.rule, isAllowed),
  ];
}

async function stepOfVisibility(entry: ToolEntry, spaces: Spaces, sessionId: string): Promise<Step> {
  if (!entry.isVisible) return step("visible", "call and result appear in no space", true);
  if (sessionId === "") return step("visible", "a call needs an active space", true);
  const spaceId = await spaces.activeSpace(sessionId);
  return spaceId === ""
    ? step("visible", "a call needs an active space, and the session has none", false)
    : step("visible", `call and result appear in space ${spaceId}`, true);
}

function describe(executor: Executor): string {
  switch (executor.kind) {
    case "internal":
      return "nobody runs it: the arguments are the result";
    case "gateway":
      return "the router calls its URL";
    case "outside":
      return "somebody outside submits the result";
    case "provider":
      return `provider ${executor.provider}${executor.source ? `, source ${executor.source.name}` : ""}`;
  }
}

function step(stage: string, finding: string, passed: boolean): Step {
  return { stage, finding, passed };
}

function explanation(
  steps: Step[],
  found: Partial<Pick<ExplainToolResponse, "reference" | "provider" | "available" | "visible" | "rule">>,
): ExplainToolResponse {
  const failed = steps.find(({ passed }) => !passed);
  return create(ExplainToolResponseSchema, {
    ...found,
    callable: failed === undefined,
    rule: failed?.finding ?? found.rule ?? "",
    steps: steps.map((one) => create(ExplainStepSchema, one)),
  });
}
