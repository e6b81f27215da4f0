import { timestampMs } from "@bufbuild/protobuf/wkt";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { CallToolRequest } from "#gen/toolbus/router/v1/tool_router_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type Answer, type Answers, failure } from "./answer.ts";
import type { Audit } from "./audit.ts";
import type { AgentContext, Contexts } from "./contexts.ts";
import { decideDeadline } from "./execute/deadline.ts";
import type { Execution, PreparedCall } from "./execute/execute.ts";
import type { CallEvent, FlightControl, Flights } from "./flights.ts";
import type { Messages, Spaces } from "./messages.ts";
import { blocked, blockedOutsideSpace, type Decision, narrow } from "./policy.ts";
import type { CallFacts, Records } from "./record.ts";
import { resolve } from "./resolve.ts";
import type { ToolEntry, ToolSet } from "./tool-set.ts";
import type { Validator } from "./validate.ts";

/*
 * The one way of every call (KIND-1):
 *
 *   resolve ─▶ policy ─▶ validate ─▶ record ─▶ execute ─▶ answer
 *
 * A stage that says no ends the call with an error result for the model. What throws is no tool's failure: the session is
 * gone, the id belongs to another call, the stores cannot be reached.
 */

export interface CallParts {
  contexts: Contexts;
  spaces: Spaces;
  validator: Validator;
  records: Records;
  messages: Messages;
  execution: Execution;
  answers: Answers;
  audit: Audit;
  clock: Clock;
  flights: Flights;
}

export interface CallOrigin {
  signal: AbortSignal;
  isLost: () => boolean;
}

type Request = CallToolRequest & { callId: string };

export interface Calls {
  call(request: Request, origin: CallOrigin): AsyncIterable<CallEvent>;
}

export function createCalls(parts: CallParts): Calls {
  const { contexts, spaces, validator, records, messages, execution, answers, clock, flights } = parts;

  async function run(request: Request, control: FlightControl): Promise<Answer> {
    const known = request.recovering ? await records.recall(request) : undefined;
    if (known !== undefined) return known;
    const admission = await admit(request, control.signal);
    if (admission.kind === "refused") return admission.answer;
    control.signal.throwIfAborted();
    try {
      return await carryOut(admission.call, control);
    } finally {
      records.release(request.callId);
    }
  }

  /** resolve ─▶ policy ─▶ validate */
  async function admit(request: Request, signal: AbortSignal): Promise<Admission> {
    const context = await contexts.ofCall(request);
    const { tools, resolution } = await contexts.find(context, request.name, signal);
    if (resolution.kind !== "found") {
      return refused(request, context, resolution.reference, decisionOfMissing(tools, resolution, request.name));
    }
    const { entry } = resolution;
    const decision = decideCall(tools, entry, request);
    if (decision.kind === "blocked") return refused(request, context, entry.reference, decision);
    const spaceId = entry.isVisible ? await spaces.activeSpace(request.sessionId) : "";
    if (entry.isVisible && spaceId === "") {
      return refused(request, context, entry.reference, blockedOutsideSpace(entry.tool.name));
    }
    const args = validator.parseArguments(entry.tool.inputSchemaJson, request.argumentsJson);
    if (args.kind === "invalid") {
      const text = `Tool ${JSON.stringify(entry.reference)} refuses its arguments: ${args.message}`;
      return { kind: "refused", answer: failure(text) };
    }
    audit(request, context, entry.reference, decision);
    return { kind: "admitted", call: admittedCall(request, context, { entry, args: args.value, spaceId }) };
  }

  /** record ─▶ execute ─▶ answer */
  async function carryOut(call: AdmittedCall, control: FlightControl): Promise<Answer> {
    const { entry, facts } = call;
    const begun = await records.begin(entry, facts, clock.now(), control.signal);
    if (begun.kind === "resolved") return begun.answer;
    const fault = begun.kind === "open" && !begun.isMine ? undefined : await shown(facts, begun.kind === "open");
    const prepared = {
      ...call,
      callId: facts.callId,
      begun,
      deadline: decideDeadline(entry, clock.now(), call.runDeadline),
    };
    if (begun.kind === "open") {
      return fault ? records.abandon(facts.callId, fault) : execution.execute(prepared, control);
    }
    const answer = await answers.finish(entry.tool, fault ?? (await execution.execute(prepared, control)));
    const standing = begun.kind === "begun" ? await records.finish(facts.callId, answer) : answer;
    messages.showResult(facts, standing);
    return standing;
  }

  /** What cannot be shown is not executed: the answer then is the fault. */
  async function shown(facts: Facts, waitsForAction: boolean): Promise<Answer | undefined> {
    if (facts.spaceId === "") return undefined;
    try {
      await messages.show(facts, "running");
      if (waitsForAction) await messages.show(facts, "requires action");
      return undefined;
    } catch (error) {
      return failure(`the call could not be shown in space ${facts.spaceId}: ${messageFromUnknown(error)}`);
    }
  }

  function refused(request: Request, context: AgentContext, tool: string, decision: Decision): Admission {
    audit(request, context, tool, decision);
    return { kind: "refused", answer: failure(decision.kind === "blocked" ? decision.message : decision.rule) };
  }

  function audit(request: Request, context: AgentContext, tool: string, decision: Decision): void {
    const { sessionId, runId, callId } = request;
    const kind = decision.kind === "permitted" ? AuditKind.PERMITTED : AuditKind.BLOCKED;
    const message = decision.kind === "blocked" ? decision.message : "";
    parts.audit({ kind, agent: context.agent.name, sessionId, runId, callId, tool, rule: decision.rule, message });
  }

  return {
    call(request, origin) {
      const { callId, sessionId, runId, name } = request;
      const identity = JSON.stringify([sessionId, runId, name]);
      return flights.join({ callId, identity, ...origin }, (control) => run(request, control));
    },
  };
}

type Facts = CallFacts & Parameters<Messages["show"]>[0] & { callId: string };
type AdmittedCall = Omit<PreparedCall, "begun" | "deadline" | "callId"> & { facts: Facts };
type Admission = { kind: "admitted"; call: AdmittedCall } | { kind: "refused"; answer: Answer };

/** Larger arguments go to their tool, but stand neither in the record nor in the space. */
const MAX_RECORDED_BYTES = 256 * 1_024;

function admittedCall(
  request: Request,
  context: AgentContext,
  { entry, args, spaceId }: { entry: ToolEntry; args: unknown; spaceId: string },
): AdmittedCall {
  const { callId, sessionId, runId, argumentsJson, deadline } = request;
  const { outputSchemaJson, executionType } = entry.tool;
  const bytes = Buffer.byteLength(argumentsJson);
  const facts = {
    callId,
    sessionId,
    runId,
    agent: context.agent.name,
    tool: entry.reference,
    argumentsJson: bytes > MAX_RECORDED_BYTES ? JSON.stringify({ truncated: true, bytes }) : argumentsJson,
    executionType,
    outputSchemaJson,
    spaceId,
    principal: context.principal,
    effect: entry.effect,
  };
  const runDeadline = deadline === undefined ? undefined : timestampMs(deadline);
  return { facts, entry, args, argumentsJson, runDeadline, scope: { ...context.scope, runId } };
}

export function decideCall(
  tools: ToolSet,
  entry: ToolEntry,
  request: Pick<CallToolRequest, "name" | "allowedTools">,
): Decision {
  const { allowedTools, name } = request;
  const isListed =
    allowedTools.length === 0 ||
    entry.standing === "built-in" ||
    allowedTools.some((listed) => {
      const named = resolve(tools, listed);
      return named.kind === "found" && named.entry === entry;
    });
  return narrow(entry.decision, name, isListed);
}

function decisionOfMissing(
  tools: ToolSet,
  missing: { kind: "outside" | "unknown"; reference: string },
  name: string,
): Decision {
  if (missing.kind === "outside") return blocked(tools.agent, missing.reference, "not in tools.use");
  const failing = tools.sources
    .filter(({ available }) => !available)
    .map(({ source, reason }) => `${source}: ${reason}`);
  const hint = failing.length === 0 ? "" : ` Sources that cannot be used: ${failing.join("; ")}.`;
  const message = `There is no tool ${JSON.stringify(name)} for agent ${JSON.stringify(tools.agent)}.${hint}`;
  return { kind: "blocked", rule: "no such tool", message };
}
