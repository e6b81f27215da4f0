import { create } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { Item, RunOptions } from "#gen/toolbus/run/v1/run_pb.ts";
import type { CreateRunRequest } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import type { RunServers } from "#runtime/config/run-servers.ts";
import { type FieldViolation, refuse, refuseField } from "#runtime/failure/failure.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { readState } from "../../log/journal.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { faultOfCost } from "../../loop/limits/limits.ts";
import { faultsOfFunctionTools } from "../../loop/tools/function-tools.ts";
import { faultsOfRunServers, placeOfServer } from "../../loop/tools/run-servers.ts";
import type { Agents, ToolRouter } from "../../loop/tools/tool-router.ts";
import { createToolTable, faultsOfOptions } from "../../loop/tools/tool-table.ts";
import { isHidden, type Standing, standingOf } from "../../sessions/history/standing.ts";
import { refuseAwaitedCalls } from "../answer/awaited-calls.ts";
import { type AcceptanceOptions, acceptRun, findAccepted } from "./acceptance.ts";
import { itemsFromInput, refuseEmptyInput, refuseUnknownCalls } from "./input.ts";
import { refuseOther, sessionOfKey } from "./repetition.ts";

export interface SessionSource {
  /** Throws `not_found` for a session that there is not. */
  getSession(sessionId: string, options: { signal: AbortSignal; principal: string }): Promise<Session>;
  /** With an id that is taken by the same principal for the same agent, gives that session. */
  createSession(
    agent: string,
    options: { signal: AbortSignal; principal: string; sessionId?: string },
  ): Promise<Session>;
}

export interface CreationOptions extends AcceptanceOptions {
  readonly sessions: SessionSource;
  readonly agents: Agents;
  readonly router: ToolRouter;
  /** Which MCP servers runs may bring along. */
  readonly runServers: RunServers;
}

interface Creator {
  readonly signal: AbortSignal;
  readonly principal: string;
  readonly caller: Caller;
}

/** Checks what can be checked before a model is asked, and accepts the run. */
export async function createRun(options: CreationOptions, request: CreateRunRequest, by: Creator): Promise<FoldedRun> {
  const { idempotencyKey, previousRunId } = request;
  const input = await itemsFromInput(request.input, { sender: by.principal, signal: by.signal });
  const repeated = await findRepeated(options, { ...request, input }, by);
  if (repeated !== undefined) return repeated;
  refuseEmptyInput(input);
  using place = await options.runQuota?.requireRoom(by.principal);
  const session = await openSession(options, request, by);
  refuseOtherAgent(request, standingOf(session).agent);
  await refuseUncounted(options.agents, session, request.options, by);
  await refuseUnknownTools(options.router, session, request.options, by);
  const standing = standingOf(session);
  await refuseUnfitServers(options, standing.agent, request.options, by);
  await refuseForeignPrevious(options, { sessionId: session.id, standing }, previousRunId);
  const hasOutputs = input.some(({ item }) => item.case === "functionCallOutput");
  const before = hasOutputs ? await options.queues.last(session.id) : undefined;
  const readAgent = () => agentOf(options.agents, session, by);
  await refuseUnknownCalls(options, { ...standing, previousRunId, fork: undefined, before }, input, readAgent);
  await refuseAwaitedCalls(options, { sessionId: session.id, previousRunId }, input);
  const accepted = create(RunAcceptedSchema, {
    sessionId: session.id,
    ...standing,
    input,
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
  if (session.state === SessionState.CLOSED) {
    refuse("failed_precondition", `session ${session.id} is closed`, { reason: "SESSION_CLOSED" });
  }
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

/** The agent of the session's next run. */
function agentOf(agents: Agents, { agent, nextAgent, contextRevision: current }: Session, by: Creator): Promise<Agent> {
  return agents.getAgent(nextAgent || agent, { ...by, contextRevision: nextAgent === "" ? current : 0 });
}

/** LOOP-12: checked before the run exists; the agent's own limit is checked by the run. */
async function refuseUncounted(
  agents: Agents,
  session: Session,
  options: RunOptions | undefined,
  by: Creator,
): Promise<void> {
  const limits = options?.limits;
  if (limits?.maxCost === undefined) return;
  const fault = faultOfCost(await agentOf(agents, session, by), limits, "options.limits.");
  if (fault === undefined) return;
  const { reason, mend } = refusalOfFault[fault.kind];
  refuse("failed_precondition", `${fault.text}; ${mend}`, {
    reason,
    metadata: { field: "options.limits.max_cost" },
  });
}

const refusalOfFault = {
  unpriced: {
    reason: "MODEL_PRICE_MISSING",
    mend: "give it one in the agent's configuration (0 for what is free), or leave max_cost out",
  },
  currency: {
    reason: "CURRENCY_MISMATCH",
    mend: "the prices and limits of an agent and of its runs are in one currency",
  },
} as const;

/** LOOP-2, LOOP-3: refused before the model is called. */
async function refuseUnknownTools(
  router: ToolRouter,
  { id: sessionId, agent, nextAgent }: Session,
  options: RunOptions | undefined,
  by: { signal: AbortSignal; principal: string },
): Promise<void> {
  const names = options?.functionTools.map(({ name }) => name) ?? [];
  const unfit = names.find((name) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name)); // requests on the bus were not validated before
  if (unfit !== undefined) refuseOptions([`the function tool ${JSON.stringify(unfit)} has a name that no model takes`]);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) refuseOptions([`two function tools are called ${JSON.stringify(twice)}`]);
  refuseOptions(await faultsOfFunctionTools(options?.functionTools ?? [], by.principal));
  const { allowedTools, toolChoice, limits } = options ?? {};
  const stops = (limits?.stopAtTools.length ?? 0) > 0;
  const namesTools = allowedTools !== undefined || toolChoice?.choice.case === "forcedTool" || stops;
  if (!namesTools && names.length === 0) return;
  const scope = namesTools
    ? { case: "session" as const, value: { sessionId } }
    : { case: "agent" as const, value: nextAgent || agent };
  // names of tools are the session's; the built-ins are every agent's, and its list costs the session nothing
  const listed = await router.listTools({ scope }, by);
  const shadowed = names.filter(createToolTable(listed, undefined).isBuiltIn); // TOOL-12
  refuseOptions(
    shadowed.map((name) => `the function tool ${JSON.stringify(name)} is named like a tool of every agent`),
  );
  refuseOptions(faultsOfOptions(createToolTable(listed, options), options));
}

/** Refused before the model is called: what operators do not let runs bring, and what is named like a source of the agent. */
async function refuseUnfitServers(
  { agents, runServers }: CreationOptions,
  agent: string,
  options: RunOptions | undefined,
  by: Creator,
): Promise<void> {
  if (options === undefined || options.mcpServers.length === 0) return;
  refuseFields(faultsOfRunServers(options, runServers));
  const { sources, tools } = await agents.getAgent(agent, by);
  const used = (tools?.use ?? []).flatMap((reference) => /^@([^/]+)\//.exec(reference)?.[1] ?? []);
  const taken = new Set([...sources.map(({ name }) => name), ...used]);
  const own = JSON.stringify(agent);
  const twice = options.mcpServers.flatMap(({ name }, index) => {
    const message = `the MCP server "${name}" of the run is named like the source "${name}" of agent ${own}`;
    return taken.has(name) ? [{ field: `${placeOfServer(index)}.name`, message }] : [];
  });
  refuseFields(twice);
}

function refuseOptions(faults: string[]): void {
  refuseFields(faults.map((message) => ({ field: "options", message })));
}

function refuseFields(fieldViolations: readonly FieldViolation[]): void {
  if (fieldViolations.length === 0) return;
  const message = fieldViolations.map((fault) => fault.message).join("; ");
  refuse("invalid_argument", message, { reason: "INVALID_REQUEST", fieldViolations });
}

/** ORCH-1: a run continues nothing that its agent is not shown. */
async function refuseForeignPrevious(
  { log }: CreationOptions,
  { sessionId, standing }: { sessionId: string; standing: Standing },
  previousRunId: string,
): Promise<void> {
  if (previousRunId === "") return;
  const previous = (await readState(log, previousRunId))?.accepted;
  const isOwn = previous?.sessionId === sessionId;
  if (isOwn && !isHidden(previous, standing)) return;
  const why = isOwn ? ` that agent ${standing.agent} is shown: the switch to it carried nothing` : "";
  refuse("not_found", `session ${sessionId} has no run ${previousRunId}${why}`, { reason: "RUN_NOT_FOUND" });
}
