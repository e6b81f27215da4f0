import type { Agent, Model } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { RunDelta } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason, RunEndReasonSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { attributesOfUsage, runSpan } from "#runtime/telemetry/conventions.ts";
import type { WorkSpan } from "#runtime/telemetry/in-span.ts";
import { traceFromFields } from "#runtime/telemetry/trace-context.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { type ClaimedRun, Superseded } from "../log/claim.ts";
import type { RunLog } from "../log/journal.ts";
import { routerCallId } from "../log/state/call-ids.ts";
import type { FoldedRun } from "../log/state/fold.ts";
import type { LoopContext } from "../loop/context.ts";
import { isTransient } from "../loop/errors/retry-while-unavailable.ts";
import { RunFailed } from "../loop/errors/run-failed.ts";
import { waitFor } from "../loop/errors/wait-for.ts";
import { type ReadInboxOptions, readInbox } from "../loop/inbox/read-inbox.ts";
import type { DeliveredInbox } from "../loop/inbox/take-events.ts";
import { faultOfCost, limitsFrom } from "../loop/limits/limits.ts";
import { stopOfLate } from "../loop/limits/stop-condition.ts";
import { failRun, type LoopOutcome, runLoop, stopRun } from "../loop/loop.ts";
import { type AgentModel, createModelRow, type ModelRow } from "../loop/requests/models.ts";
import type { DeltaWriter } from "../loop/streaming/deltas.ts";
import type { ToolMessageParts } from "../loop/streaming/shown-calls.ts";
import { listTools } from "../loop/tools/list-tools.ts";
import type { Agents } from "../loop/tools/tool-router.ts";
import type { ModelSource } from "../model/providers/model-source.ts";
import { readHistory, tokensBefore } from "./history/history.ts";
import { takenEventIds } from "./history/taken-events.ts";
import type { ActiveRun, QueueEntry, SessionQueues } from "./queue.ts";
import type { Claim } from "./worker/worker-options.ts";

type PartsOfLoop = Pick<LoopContext, "router" | "checkpointMs" | "handover" | "inSpan">;

export interface TurnLoopOptions extends ToolMessageParts, PartsOfLoop, ReadInboxOptions {
  readonly log: RunLog;
  readonly queues: SessionQueues;
  readonly lendSlot: (principal: string) => Disposable;
  readonly agents: Agents;
  readonly modelOf: ModelSource;
  readonly audit: Audit;
  readonly publishDelta: (runId: string, delta: RunDelta) => void;
  readonly setDeltas: (runId: string, deltas: DeltaWriter | undefined) => void;
}

/** In the trace of the run's creator, a span for each process. What the loop needs is asked for while the claim is stored. */
export async function turnLoop(
  options: TurnLoopOptions,
  claim: Claim,
  active: ActiveRun,
  signal: AbortSignal,
): Promise<LoopOutcome | undefined> {
  const { runId, accepted } = active.state;
  const { agent, sessionId, traceparent, tracestate } = accepted;
  const describe = () => runSpan({ agent, sessionId, runId });
  const work = async (span: WorkSpan) => {
    using gathered = gather(options, active, signal);
    const run = await claim();
    const outcome = run && (await turn(options, run, gathered, signal));
    if (active.journal.state !== undefined) tellEnd(span, active.journal.state);
    return outcome;
  };
  return options.inSpan(describe, work, traceFromFields({ traceparent, tracestate }));
}

function tellEnd(span: WorkSpan, { phase, spent }: FoldedRun): void {
  span.set(attributesOfUsage(spent));
  const ended = phase.kind === "ended" ? phase.ended : undefined;
  if (ended?.state === RunState.FAILED) span.fail(enumWord(RunEndReasonSchema, ended.endReason));
}

/** What the loop of a run needs. What is under way is given up when it is disposed. */
function gather(options: TurnLoopOptions, active: ActiveRun, signal: AbortSignal) {
  const gathering = openEnding(signal);
  const listing = openEnding(gathering.signal, options.handover);
  const listed = listTools(active.state, options, listing.signal);
  const opened = openContextInTime(options, active, gathering.signal);
  for (const asked of [listed, opened]) asked.catch(() => {}); // the loop gets the error when it needs it
  return { listed, opened, [Symbol.dispose]: () => gathering.end(new Error("the run is put down")) };
}

async function turn(
  options: TurnLoopOptions,
  run: ClaimedRun,
  { listed, opened }: ReturnType<typeof gather>,
  signal: AbortSignal,
): Promise<LoopOutcome> {
  const { runId } = run.state;
  try {
    const context = await opened;
    if (context !== undefined) return await runLoop(run, { ...context, signal, listed });
    const ownLimits = limitsFrom(undefined, run.state.accepted.options?.limits);
    return await stopRun(run, { ...options, signal }, stopOfLate(run.state, ownLimits));
  } catch (error) {
    if (error instanceof Superseded || signal.aborted || isTransient(error)) throw error;
    const isExpected = error instanceof RunFailed;
    if (!isExpected) options.logger.error({ err: error, runId }, "a run failed by an error that nobody expected");
    const failed = isExpected ? error : new RunFailed(RunEndReason.INTERNAL_ERROR, "internal error", error); // worker-5
    return await failRun(run, { ...options, signal }, failed);
  } finally {
    options.setDeltas(runId, undefined);
  }
}

const reasonOfFault = { unpriced: RunEndReason.PRICE_MISSING, currency: RunEndReason.CURRENCY_MISMATCH } as const;

/** Undefined if the run is canceled, or its time is over before: what a loop needs may be long away, or gone. */
async function openContextInTime(
  options: TurnLoopOptions,
  active: ActiveRun,
  signal: AbortSignal,
): Promise<OpenedContext | undefined> {
  const { acceptedAtMs, accepted, cancel } = active.state;
  if (cancel !== undefined) return undefined;
  const { deadlineMs } = limitsFrom(undefined, accepted.options?.limits);
  using deadline = timeoutSignal(Math.max(0, acceptedAtMs + deadlineMs - options.clock.now()));
  using opening = openEnding(signal, deadline);
  try {
    return await openContext(options, active, opening.signal);
  } catch (error) {
    if (signal.aborted || !deadline.aborted) throw error;
    return undefined;
  }
}

type OpenedContext = Omit<LoopContext, "signal">;

async function openContext(
  options: TurnLoopOptions,
  { entry, state }: ActiveRun,
  signal: AbortSignal,
): Promise<OpenedContext> {
  const { log, queues, logger, clock, agents } = options;
  const { runId, accepted } = state;
  const { agent: name, principal } = accepted;
  const before = queues.before(entry);
  const waiting = { clock, signal, endReason: RunEndReason.AGENT_UNAVAILABLE, what: `agent ${name}` };
  const agentAsked = waitFor(waiting, () => agents.getAgent(name, { signal, principal }));
  const maxTokens = async () => tokensBefore(await agentAsked);
  const [agent, history, inbox] = await Promise.all([
    agentAsked,
    before.then((before) => readHistory(queues, log, { ...accepted, before }, maxTokens)),
    inboxOfRun(options, state, before, signal),
  ]);
  const limits = limitsFrom(agent.limits, accepted.options?.limits);
  const fault = faultOfCost(agent, accepted.options?.limits);
  if (fault !== undefined) throw new RunFailed(reasonOfFault[fault.kind], fault.text);
  return {
    ...{ ...options, agent, limits, history, inbox },
    models: modelsOfAgent(options, agent),
    maxTurnBytes: log.maxEventBytes(runId),
    lendSlot: () => options.lendSlot(principal),
    publishDelta: (delta) => options.publishDelta(runId, delta),
    setDeltas: (deltas) => options.setDeltas(runId, deltas),
    onRefused: ({ name, callId }, why) => {
      const { sessionId } = accepted;
      const subject = { agent: accepted.agent, sessionId, runId, callId: routerCallId(runId, callId), tool: name };
      const message = `agent ${accepted.agent}: ${why}`;
      options.audit({ kind: AuditKind.BLOCKED, ...subject, rule: why, message }, principal);
    },
    onRetry: (error, afterMs) => logger.warn({ err: error, runId, afterMs }, "the model is asked again"),
    onFailover: (error, modelId) => logger.warn({ err: error, runId, modelId }, "the fallback model is asked"),
  };
}

async function inboxOfRun(
  options: TurnLoopOptions,
  state: FoldedRun,
  before: Promise<QueueEntry | undefined>,
  signal: AbortSignal,
): Promise<DeliveredInbox> {
  const inbox = await readInbox(options, state, signal);
  return { ...inbox, takenEventIds: await takenEventIds(options.queues, options.log, await before, inbox.events) };
}

function modelsOfAgent({ modelOf }: TurnLoopOptions, { name, model, fallbackModel }: Agent): ModelRow {
  if (model === undefined) throw new RunFailed(RunEndReason.MODEL_ERROR, `agent ${name} names no model`);
  const open = (config: Model): AgentModel => ({ language: modelOf(config), config });
  try {
    return fallbackModel === undefined ? createModelRow(open(model)) : createModelRow(open(model), open(fallbackModel));
  } catch (error) {
    throw new RunFailed(RunEndReason.MODEL_ERROR, messageFromUnknown(error), error);
  }
}
