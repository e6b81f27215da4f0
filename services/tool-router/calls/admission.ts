import { timestampMs } from "@bufbuild/protobuf/wkt";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { RunContext } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import type { AllowedTools } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolRequest } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { Validator } from "#runtime/schema/json-schema/validator.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { AgentContext } from "../sessions/contexts/agent-context.ts";
import type { Contexts } from "../sessions/contexts/contexts.ts";
import { AGENT_SWITCHED, isSwitching, refuseSwitched } from "../sessions/failures.ts";
import type { ActiveSession, Sessions } from "../sessions/sessions.ts";
import type { Spaces } from "../sessions/spaces.ts";
import { blockedOutsideSpace, type Decision, narrow } from "../tools/policy.ts";
import { refusalOfArguments, refusalOfMissing, TOO_LARGE, UNFIT, withAlternatives } from "../tools/refusal.ts";
import { resolve } from "../tools/resolve.ts";
import { executionBy } from "../tools/tool-set/executor.ts";
import type { ToolEntry, ToolSet } from "../tools/tool-set/tool-set.ts";
import { type Answer, failure } from "./answers/answer.ts";
import { faultOfHandedArguments, recordedArguments, recordedSchema } from "./answers/record-size.ts";
import type { PreparedCall } from "./execute/execute.ts";
import type { Messages } from "./messages.ts";
import type { CallFacts } from "./records/records.ts";
import { decideByRun, decideByTally } from "./run-limits/run-bounds.ts";
import { createRunTally } from "./run-limits/run-tally.ts";

export interface AdmissionParts {
  sessions: Pick<Sessions, "active">;
  contexts: Contexts;
  spaces: Spaces;
  validator: Validator;
  audit: Audit;
  clock: Pick<Clock, "now">;
}

/** Decides whether a call is made: resolve ─▶ policy ─▶ validate. A refused call has had no effect. */
export interface Admitter {
  admit(request: IdentifiedCall, signal: AbortSignal): Promise<Admission>;
}

export function createAdmission(parts: AdmissionParts): Admitter {
  const { sessions, contexts, spaces, validator, audit: record, clock } = parts;
  const tally = createRunTally();

  async function admit(request: IdentifiedCall, signal: AbortSignal): Promise<Admission> {
    try {
      return await decide(request, signal);
    } catch (error) {
      if (isSwitching(error)) return { kind: "switching" };
      throw error;
    }
  }

  async function activeSession({ sessionId, contextRevision, agent }: IdentifiedCall): Promise<ActiveSession> {
    const active = await sessions.active(sessionId, contextRevision);
    return agent === "" || agent === active.session.agent ? active : refuseSwitched(active.session);
  }

  async function decide(request: IdentifiedCall, signal: AbortSignal): Promise<Admission> {
    const active = await activeSession(request).catch((error: unknown) => throwAudited(record, request, error));
    const context = contexts.ofSession(active, request);
    const { tools, resolution } = await contexts.find(context, request.name, signal);
    const { reference } = resolution.kind === "found" ? resolution.entry : resolution;
    const refuse = (decision: Decision) => refused(request, context, reference, decision);
    if (resolution.kind !== "found") return refuse(refusalOfMissing(tools, resolution, request.name));
    const { entry } = resolution;
    const decision = decideCall(tools, entry, request);
    if (decision.kind === "blocked") return refuse(withAlternatives(decision, tools, request.name));
    const allowance = { tools, limits: context.agent.limits };
    const byRun = decideByRun(allowance, entry, request, clock.now());
    if (byRun !== undefined) return refuse(byRun);
    const spaceId = entry.isVisible ? await spaces.activeSpace(request.sessionId, context.agent.name) : "";
    if (entry.isVisible && spaceId === "")
      return refuse(blockedOutsideSpace(entry.tool.name, tools.policy.isInUse("enter_space")));
    const { inputSchemaJson } = entry.tool;
    const { argumentsJson } = request;
    const fault = await validator.faultOfArguments(inputSchemaJson, argumentsJson, context.principal, signal);
    if (fault !== undefined) return refuse(refusalOfArguments(entry, UNFIT, fault));
    const tooLarge = entry.executor.kind === "outside" ? faultOfHandedArguments(request.argumentsJson) : undefined;
    if (tooLarge !== undefined) return refuse(refusalOfArguments(entry, TOO_LARGE, tooLarge));
    const byTally = decideByTally(tally, allowance, entry, request);
    if (byTally !== undefined) return refuse(byTally);
    audit(request, context, reference, decision);
    return { kind: "admitted", call: admittedCall(request, context, { entry, spaceId }) };
  }

  function refused(request: IdentifiedCall, context: AgentContext, tool: string, decision: Decision): Admission {
    audit(request, context, tool, decision);
    return { kind: "refused", answer: failure(decision.kind === "blocked" ? decision.message : decision.rule) };
  }

  function audit(request: IdentifiedCall, context: AgentContext, tool: string, decision: Decision): void {
    const { sessionId, runId, callId } = request;
    const kind = decision.kind === "permitted" ? AuditKind.PERMITTED : AuditKind.BLOCKED;
    const message = decision.kind === "blocked" ? decision.message : "";
    record(
      { kind, agent: context.agent.name, sessionId, runId, callId, tool, rule: decision.rule, message },
      context.principal,
    );
  }

  return { admit };
}

/** ORCH-1: the refusal of a call that a former agent decided is audited like any other. */
function throwAudited(record: Audit, request: IdentifiedCall, error: unknown): never {
  const { sessionId, runId, callId, name: tool, principal } = request;
  if (error instanceof Failure && error.reason === AGENT_SWITCHED) {
    const agent = error.metadata?.agent ?? "";
    const rule = "decided by a former agent";
    record({ kind: AuditKind.BLOCKED, agent, sessionId, runId, callId, tool, rule, message: error.message }, principal);
  }
  throw error;
}

export type Facts = CallFacts & Parameters<Messages["show"]>[0] & { callId: string };
export type AdmittedCall = Omit<PreparedCall, "begun" | "deadline" | "callId"> & { facts: Facts };
export type Admission =
  | { kind: "admitted"; call: AdmittedCall }
  | { kind: "refused"; answer: Answer }
  /** The session is being switched, and the caller is bound to no agent: the next one may decide. */
  | { kind: "switching" };

/** A request under the id that it was given or that was chosen for it. */
export type IdentifiedCall = Omit<CallToolRequest, "runContext"> & {
  readonly callId: string;
  readonly principal?: string | undefined;
  /** What the run that calls leaves to it, as far as its word is believed. */
  readonly context: RunContext;
};

function admittedCall(
  request: IdentifiedCall,
  context: AgentContext,
  { entry, spaceId }: { entry: ToolEntry; spaceId: string },
): AdmittedCall {
  const { callId, sessionId, runId, name: calledAs, argumentsJson, deadline } = request;
  const { outputSchemaJson, executionType } = entry.tool;
  const facts = {
    callId,
    sessionId,
    runId,
    agent: context.agent.name,
    tool: entry.reference,
    calledAs,
    argumentsJson: recordedArguments(argumentsJson),
    executionType,
    outputSchemaJson: recordedSchema(outputSchemaJson),
    spaceId,
    principal: context.principal,
    effect: entry.effect,
    execution: executionBy(entry.executor, entry.tool),
    ...(request.task && { task: request.task }),
  };
  const runDeadline = deadline === undefined ? undefined : timestampMs(deadline);
  const scope = { ...context.scope, runId };
  const answers = { forms: request.answersForms, urls: request.answersUrls };
  return { facts, entry, argumentsJson, answers, runDeadline, context: leftToFurther(request), scope };
}

/** The run's limits as they go to the provider: they hold for every call on behalf of this one. */
function leftToFurther({ context: { bounds, allowedTools }, allowedTools: own }: IdentifiedCall) {
  return { ...(bounds && { bounds }), allowedTools: own === undefined ? allowedTools : [...allowedTools, own] };
}

export function decideCall(
  tools: ToolSet,
  entry: ToolEntry,
  request: Pick<CallToolRequest, "name"> & {
    readonly allowedTools?: Pick<AllowedTools, "names"> | undefined;
    readonly context?: { readonly allowedTools: readonly Pick<AllowedTools, "names">[] };
  },
): Decision {
  const { allowedTools, name, context } = request;
  const isNamedIn = (names: readonly string[]) =>
    names.some((listed) => {
      const named = resolve(tools, listed);
      return named.kind === "found" && named.entry === entry;
    });
  const isListed =
    entry.standing === "built-in" ||
    ((allowedTools === undefined || isNamedIn(allowedTools.names)) &&
      (context?.allowedTools ?? []).every(({ names }) => isNamedIn(names)));
  return narrow(entry.decision, name, isListed);
}
