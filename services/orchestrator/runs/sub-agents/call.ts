/**
 * LOOP-17: an agent that is called as a tool. Its run is a run like any other, in a session of its own.
 *
 * sub-agent-1  Session and run are named by the call: a call that is repeated, here or on another process, after a crash too, finds
 *     the run that the first one started and waits for it. The call's id is the run's key: other runs of the session never
 *     stand for it.
 * sub-agent-2  Who leaves the call does not end the run, as a process that hands over leaves it as well. The log of the run that
 *     called decides: once that one is over, or to be canceled, the run of its call is canceled. A call of no run is canceled by who leaves
 *     it. Who falls silent has not left that one: another router comes for its result.
 * sub-agent-3  A run that is canceled cancels the runs of its open calls, whether anybody waits for them or not.
 */

import { create, equals } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { SubAgent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { ExecuteToolRequest } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type RunAccepted, RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, ItemSchema, RunOptionsSchema, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { MoneySchema } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { refuse, unlessMissing } from "#runtime/failure/failure.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { decodeRunContext } from "#runtime/rpc/run-context.ts";
import { readState } from "../../log/journal.ts";
import { routerCallId } from "../../log/state/call-ids.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { userItem } from "../../log/state/view.ts";
import { faultOfCost, limitsFrom } from "../../loop/limits/limits.ts";
import type { Agents } from "../../loop/tools/tool-router.ts";
import { standingOf } from "../../sessions/history/standing.ts";
import { type AcceptanceOptions, acceptRun, findAccepted } from "../create/acceptance.ts";
import type { SessionSource } from "../create/creation.ts";
import { sessionOfCall } from "./called-session.ts";
import { type Caller, callsLeft, childLimits, faultOfCaller } from "./child-limits.ts";
import { findSubAgent, toolName } from "./provided-tools.ts";

export interface SubAgentOptions extends AcceptanceOptions {
  readonly agents: Agents;
  readonly sessions: Pick<SessionSource, "createSession">;
}

export type Started = { kind: "run"; runId: string } | { kind: "refused"; result: ToolResult };

/** sub-agent-1: the run that a call started; undefined when it started none. */
export function findRunOfCall(options: AcceptanceOptions, callId: string): Promise<FoldedRun | undefined> {
  return findAccepted(options, sessionOfCall(callId), callId);
}

/** Finds or starts the run of a call. Throws when nothing was started. */
export async function startSubAgent(
  options: SubAgentOptions,
  request: ExecuteToolRequest,
  signal: AbortSignal,
): Promise<Started> {
  const { callId, tool, scope } = request;
  const by = { signal, principal: scope?.principal ?? "" };
  const sessionId = sessionOfCall(callId);
  const standing = await findRunOfCall(options, callId);
  if (standing !== undefined) {
    refuseForeign(standing, request);
    return { kind: "run", runId: standing.runId };
  }
  const parent = scope?.runId ? await readState(options.log, scope.runId) : undefined;
  if (parent !== undefined && parent.accepted.sessionId !== scope?.sessionId)
    refuse("not_found", `session ${scope?.sessionId} has no run ${parent.runId}`, { reason: "RUN_NOT_FOUND" });
  const agent = await options.agents.getAgent(scope?.agent ?? "", by);
  const offered =
    findSubAgent(agent, tool) ??
    refuse("not_found", `agent ${agent.name} may call no ${tool}`, { reason: "TOOL_NOT_FOUND" });
  const limits = limitsFrom(agent.limits, parent?.accepted.options?.limits);
  const caller = { limits, state: parent, bounds: decodeRunContext(request.runContext).bounds };
  const fault = faultOfCaller(caller) ?? (await faultOfCalled(options, offered, caller, by));
  if (fault !== undefined)
    return { kind: "refused", result: errorResult(`agent "${offered.agent}" cannot be called: ${fault}`) };
  const session = await options.sessions.createSession(offered.agent, { ...by, sessionId }).catch(unlessMissing);
  if (session === undefined) return { kind: "refused", result: errorResult(`there is no agent "${offered.agent}"`) };
  const state = await acceptRun(options, acceptedOf(request, { session, offered, caller, nowMs: options.clock.now() }));
  return { kind: "run", runId: state.runId };
}

/** One id is one call, and clients choose theirs: who comes with that of another call gets nothing of its run. */
function refuseForeign({ accepted }: FoldedRun, { callId, tool, argumentsJson, scope }: ExecuteToolRequest): void {
  const [asked] = accepted.input;
  const isAsked = asked !== undefined && equals(ItemSchema, asked, inputFrom(argumentsJson));
  const isOwn = accepted.principal === (scope?.principal ?? "") && toolName(accepted.agent) === tool;
  if (isAsked && isOwn) return;
  refuse("already_exists", `the call id ${callId} belongs to another call`, {
    reason: "CALL_ID_REUSED",
    metadata: { call_id: callId },
  });
}

/** LOOP-12: why the called run could not be held to what is left, before it is created. */
async function faultOfCalled(
  { agents }: SubAgentOptions,
  { agent, limits }: SubAgent,
  caller: Caller,
  by: { signal: AbortSignal; principal: string },
): Promise<string | undefined> {
  const { maxCost } = childLimits(limits, caller, Number.POSITIVE_INFINITY);
  if (maxCost === undefined) return undefined;
  const called = await agents.getAgent(agent, by).catch(unlessMissing); // then its session cannot be opened
  return called && faultOfCost(called, { maxCost: create(MoneySchema, maxCost) })?.text;
}

function acceptedOf(
  { callId, argumentsJson, scope, deadline }: ExecuteToolRequest,
  call: { session: Session; offered: SubAgent; caller: Caller; nowMs: number },
): RunAccepted {
  const { session, offered, caller, nowMs } = call;
  const timeLeftMs = deadline === undefined ? Number.POSITIVE_INFINITY : timestampMs(deadline) - nowMs;
  const { state } = caller;
  const ownCallId = state === undefined ? callId : callId.slice(routerCallId(state.runId, "").length);
  const depth = (state?.accepted.parent?.depth ?? 0) + 1;
  return create(RunAcceptedSchema, {
    ...standingOf(session),
    sessionId: session.id,
    agent: offered.agent,
    principal: scope?.principal ?? "",
    idempotencyKey: callId, // sub-agent-1
    input: [inputFrom(argumentsJson)],
    options: create(RunOptionsSchema, {
      limits: childLimits(offered.limits, caller, timeLeftMs),
      ...(callsLeft(caller) === 0 && { toolChoice: { choice: { case: "mode" as const, value: ToolChoiceMode.NONE } } }), // a limit of 0 is none
    }),
    parent: { runId: state?.runId ?? "", callId: ownCallId, depth },
  });
}

function inputFrom(argumentsJson: string): Item {
  const { input } = JSON.parse(argumentsJson) as { input: string }; // validated by the router
  return userItem(input.toWellFormed());
}
