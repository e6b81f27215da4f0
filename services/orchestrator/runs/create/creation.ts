import { create } from "@bufbuild/protobuf";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { Item } from "#gen/toolbus/run/v1/run_pb.ts";
import type { CreateRunRequest } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { onFirstUse } from "#runtime/collections/on-first-use.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import type { OnBehalfOptions } from "#runtime/rpc/bus/client-on-behalf.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { StoredEvent } from "../../log/state/log-record.ts";
import type { Agents } from "../../loop/tools/tool-router.ts";
import { isHidden, standingOf } from "../../sessions/history/standing.ts";
import { refuseAwaitedCalls } from "../answer/awaited-calls.ts";
import type { BoundResult } from "../answer/outputs.ts";
import { type AcceptanceOptions, acceptRun, findAccepted } from "./acceptance.ts";
import { boundedInput, inputWithKnownCalls, itemsFromInput, refuseEmptyInput } from "./input.ts";
import { type OptionsPolicy, refuseUnfitBrought, refuseUnfitOptions } from "./options.ts";
import { refuseOther, sessionOfKey } from "./repetition/repetition.ts";

export interface SessionSource {
  /** Throws `not_found` for a session that there is not. */
  getSession(sessionId: string, options: OnBehalfOptions): Promise<Session>;
  /** With an id that is taken by the same principal for the same agent, gives that session. */
  createSession(agent: string, options: OnBehalfOptions & { sessionId?: string }): Promise<Session>;
}

export interface CreationOptions extends AcceptanceOptions, OptionsPolicy {
  readonly sessions: SessionSource;
  readonly agents: Agents;
  readonly boundResult: BoundResult;
}

interface Creator {
  readonly signal: AbortSignal;
  readonly principal: string;
  readonly caller: Caller;
}

/** Checks what can be checked before a model is asked, and accepts the run. */
export async function createRun(options: CreationOptions, request: CreateRunRequest, by: Creator): Promise<FoldedRun> {
  const { idempotencyKey, previousRunId } = request;
  const given = await itemsFromInput(request.input, { sender: by.principal, signal: by.signal });
  const repeated = await findRepeated(options, { ...request, input: given }, by);
  if (repeated !== undefined) return repeated;
  refuseEmptyInput(given);
  using place = await options.runQuota?.requireRoom(by.principal);
  await refuseUnfitBrought(options, request.options, by.principal);
  const continued = previousRunId === "" ? undefined : options.log.first(previousRunId);
  const [session, first] = await Promise.all([openSession(options, request, by), continued]);
  const standing = standingOf(session);
  refuseOtherAgent(request, standing.agent);
  const readAgent = onFirstUse(() => options.agents.getAgent(standing.agent, by));
  await refuseUnfitOptions(options, request.options, { sessionId: session.id, agent: standing.agent, readAgent, by });
  if (previousRunId !== "") refuseForeignPrevious(previousRunId, first, session);
  const hasOutputs = given.some(({ item }) => item.case === "functionCallOutput");
  const before = hasOutputs ? await options.queues.last(session.id) : undefined;
  const previous = { ...standing, previousRunId, fork: undefined, before };
  const input = await inputWithKnownCalls(options, previous, given, readAgent);
  await refuseAwaitedCalls(options, { sessionId: session.id, previousRunId }, input);
  const accepted = create(RunAcceptedSchema, {
    sessionId: session.id,
    ...standing,
    input: await boundedInput(input, options.boundResult, session.id),
    principal: session.principal,
    idempotencyKey,
    previousRunId,
    ...(request.options && { options: request.options }),
  });
  const state = await acceptRun(options, accepted, { isFirst: sessionOf(request, by.principal) === "", place });
  refuseOther(state, accepted); // another creation may have been first
  return state;
}

/** The run that the key's first creation made, also when its session was closed or switched since. */
async function findRepeated(
  options: CreationOptions,
  request: Omit<CreateRunRequest, "input"> & { input: Item[] },
  { principal, caller }: Creator,
): Promise<FoldedRun | undefined> {
  const { idempotencyKey } = request;
  if (idempotencyKey === "") return undefined;
  const state = await findAccepted(options, sessionOf(request, principal), idempotencyKey);
  if (state === undefined) return undefined;
  requireOwner(state.accepted, caller, `session ${state.accepted.sessionId}`);
  refuseOther(state, request);
  return state;
}

async function openSession({ sessions }: CreationOptions, request: CreateRunRequest, by: Creator): Promise<Session> {
  const sessionId = sessionOf(request, by.principal);
  const session = await (request.sessionId === ""
    ? sessions.createSession(request.agent, { ...by, ...(sessionId !== "" && { sessionId }) })
    : sessions.getSession(sessionId, by));
  requireOwner(session, by.caller, `session ${session.id}`);
  if (session.state === SessionState.CLOSED)
    refuse("failed_precondition", `session ${session.id} is closed`, { reason: "SESSION_CLOSED" });
  return session;
}

/** A client that names an agent and gets the answers of another one would never learn of it. */
function refuseOtherAgent({ sessionId, agent }: CreateRunRequest, actual: string): void {
  if (sessionId === "" || agent === "" || agent === actual) return;
  refuseField("agent", `session ${sessionId} has agent ${actual}, not ${agent}: name ${actual}`);
}

/** The session that the request names, or its key; empty for one that is to be opened. */
function sessionOf({ sessionId, agent, idempotencyKey }: Omit<CreateRunRequest, "input">, principal: string): string {
  return sessionId || (idempotencyKey === "" ? "" : sessionOfKey(principal, agent, idempotencyKey));
}

/** ORCH-1: a run continues nothing that its agent is not shown. */
function refuseForeignPrevious(previousRunId: string, first: StoredEvent | undefined, session: Session): void {
  const standing = standingOf(session);
  const previous = first?.event.event;
  const isOwn = previous?.case === "accepted" && previous.value.sessionId === session.id;
  if (isOwn && !isHidden(previous.value, standing)) return;
  const why = isOwn ? ` that agent ${standing.agent} is shown: the switch to it carried nothing` : "";
  refuse("not_found", `session ${session.id} has no run ${previousRunId}${why}`, { reason: "RUN_NOT_FOUND" });
}
