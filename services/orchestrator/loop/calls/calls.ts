/**
 * Executes the calls of a turn.
 *
 * calls-1  Each call gets exactly one result in the log, whatever happens to it: refusals and failures are results.
 * calls-2  What was committed is dispatched, also again by a later claim: under the same call id, `recovering`, so that the
 *     router joins the first execution, gives its result, or says that the outcome is unknown.
 * calls-3  A router that cannot be reached is asked again for a while under calls-2, however long the call has run before it was lost;
 *     then its failure is the result. A call that loses router after router may be what takes them down: it is given up.
 * calls-4  When an attempt that failed may have begun what changes something, the model's result says that the outcome is unknown:
 *     its next try is another call, also for a tool that knows a repeated one by its id.
 * calls-5  A run that waits for what may start runs itself takes no slot meanwhile: those runs may be waiting for one.
 */

import { create } from "@bufbuild/protobuf";
import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import { type CallExecution, Effect, type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Usage } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { startedNothing } from "#runtime/failure/not-started.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";
import { timedBy } from "#runtime/time/duration.ts";
import { inParallel } from "#runtime/time/in-parallel.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";
import type { ClaimedRun } from "../../log/claim.ts";
import { routerCallId } from "../../log/state/call-ids.ts";
import { isOpenCall, openCalls } from "../../log/state/fold.ts";
import { isTooLarge } from "../../log/too-large.ts";
import type { LoopContext } from "../context.ts";
import { boundsOfCall, faultOfBudget } from "../limits/budget.ts";
import type { DeltaWriter } from "../streaming/deltas.ts";
import { endShownCall } from "../streaming/end-shown-calls.ts";
import { runSourcesOf } from "../tools/run-servers.ts";
import type { ToolTable } from "../tools/tool-table.ts";
import { createPatience } from "./patience.ts";
import { decideRefusals } from "./refusal.ts";

export interface CallWork {
  readonly table: ToolTable;
  readonly deltas: DeltaWriter;
  readonly signal: AbortSignal;
  /** calls-2: whether a process before this one may have dispatched the calls. */
  readonly isRecovering: boolean;
}

/** Gives every open call its result, but those that wait for the client of the run. */
export async function executeCalls(run: ClaimedRun, context: LoopContext, work: CallWork): Promise<void> {
  const { accepted, turns, atTurn } = run.state;
  const { options, principal } = accepted;
  const { limits } = context;
  const { table, isRecovering } = work;
  const { calls = [], committed } = turns.at(-1) ?? {};
  const finishReason = committed?.finishReason ?? "";
  const rules = { table, options, turn: turns.length, ...atTurn, limits, principal, finishReason, isRecovering };
  const refusals = await decideRefusals(calls, rules);
  const dispatched: FunctionCall[] = [];
  const finish = async (callId: string, answered: Answered) => {
    await endShownCall({ callId, result: answered.result }, run, context, work.signal);
    await record(run, callId, answered);
  };
  const refuse = (call: FunctionCall, why: string) => {
    context.onRefused(call, why);
    return finish(call.callId, { result: errorResult(why) });
  };
  for (const call of openCalls(run.state)) {
    const refusal = refusals.get(call.callId);
    if (refusal !== undefined) await refuse(call, refusal);
    else if (table.find(call.name)?.kind !== "function") dispatched.push(call);
  }
  const limit = options?.parallelToolCalls === false ? 1 : limits.maxParallelCalls;
  using _ = dispatched.some(({ name }) => table.canSpend(name)) ? context.lendSlot() : undefined; // calls-5
  await inParallel(dispatched, limit, async (call) => {
    const isUsedUp = isRecovering ? undefined : faultOfBudget(run.state.spent, limits); // by calls beside it, meanwhile
    if (isUsedUp !== undefined) return refuse(call, isUsedUp);
    const answered = await execute(run, call, context, work);
    await finish(call.callId, { ...answered, endsRun: answered.endsRun === true && table.isBuiltIn(call.name) });
  });
}

/** What a call answered, who executed it, and what it used. */
interface Answered {
  readonly result: ToolResult;
  readonly execution?: CallExecution;
  readonly usage?: Usage;
  readonly callCount?: number;
  readonly endsRun?: boolean;
}

/** calls-1: the first result counts, whichever process wrote it. The router shortens results to far less than the log takes. */
async function record(run: ClaimedRun, callId: string, answered: Answered): Promise<void> {
  const write = (value: Answered) =>
    run.appendAhead((state) =>
      isOpenCall(state, callId) ? { case: "callFinished", value: { callId, ...value } } : undefined,
    );
  try {
    await write(answered);
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    await write({ ...answered, result: errorResult(error.message) });
  }
}

async function execute(run: ClaimedRun, call: FunctionCall, context: LoopContext, work: CallWork): Promise<Answered> {
  const { clock } = context;
  const backoff = createBackoff({ initialMs: 50, maxMs: 1_000 });
  const patience = createPatience();
  let mayHaveBegun = work.isRecovering;
  for (let isRecovering = work.isRecovering; ; isRecovering = true) {
    const askedAtMs = clock.now();
    try {
      return await dispatch(run, call, context, { ...work, isRecovering });
    } catch (error) {
      work.signal.throwIfAborted();
      if (error instanceof Failure && error.reason === "AGENT_SWITCHED") work.table.noteRevision(""); // list again
      mayHaveBegun ||= leavesUnknown(error);
      const mayPass = error instanceof Failure && passingCodes.has(error.code);
      const isOver = !mayPass || patience.isOver(error, { askedAtMs, nowMs: clock.now() }); // calls-3
      if (isOver) return givenUp(call, error, mayHaveBegun ? work.table.effectOf(call.name) : Effect.PURE);
      await clock.delay(backoff.next(), work.signal);
    }
  }
}

const passingCodes: ReadonlySet<string> = new Set(["unavailable", "aborted"]);

/** calls-4. */
function givenUp({ name }: FunctionCall, error: unknown, mayHaveHad: Effect): Answered {
  const why = messageFromUnknown(error);
  if (mayHaveHad === Effect.PURE) return { result: errorResult(`tool "${name}" could not be called: ${why}`) };
  const caution = mayHaveHad === Effect.IDEMPOTENT ? "" : ", and must not be repeated blindly";
  return { result: errorResult(`outcome_unknown: tool "${name}" may have been executed${caution}: ${why}`) };
}

/** Whether a call that failed so may have begun all the same: not when it was never sent, nor when the router refused it. */
function leavesUnknown(error: unknown): boolean {
  const isTaken = error instanceof Failure && error.code === "already_exists"; // the id, by another call
  return !isTaken && !startedNothing(error);
}

async function dispatch(
  run: ClaimedRun,
  call: FunctionCall,
  { router, limits }: LoopContext,
  { table, deltas, signal, isRecovering }: CallWork,
): Promise<Answered> {
  const { runId, accepted, acceptedAtMs } = run.state;
  const { callId } = call;
  const request = {
    callId: routerCallId(runId, callId),
    sessionId: accepted.sessionId,
    name: call.name,
    argumentsJson: call.argumentsJson.trim() === "" ? "{}" : call.argumentsJson,
    runId,
    contextRevision: table.contextRevision,
    runSources: runSourcesOf(accepted.options),
    ...(accepted.options?.allowedTools && { allowedTools: accepted.options.allowedTools }), // whole: what is the client's alone is no tool of the router
    runContext: encodeRunContext({
      recovering: isRecovering,
      bounds: boundsOfCall(run.state, limits, {
        index: run.state.turns.at(-1)?.calls.indexOf(call) ?? 0,
        sharers: table.canSpend(call.name)
          ? openCalls(run.state).filter(({ name }) => table.canSpend(name)).length
          : undefined,
      }),
    }),
    ...timedBy(acceptedAtMs + limits.deadlineMs),
  };
  let answered: Answered | undefined;
  try {
    for await (const { event } of router.callTool(request, { signal, principal: accepted.principal })) {
      if (event.case === "progress") deltas.tell({ case: "progress", value: { callId, progress: event.value } });
      if (event.case === "log") deltas.tell({ case: "log", value: { callId, log: event.value } });
      if (event.case === "result") {
        const { $typeName, usage, callCount, endsRun, execution, toolsRevision, ...told } = event.value;
        const result = create(ToolResultSchema, told);
        const by = { ...(usage && { usage }), ...(execution && { execution }) };
        answered = { result, callCount, endsRun, ...by }; // read to the stream's end, which closes it
        table.noteRevision(toolsRevision);
      }
    }
  } catch (error) {
    if (answered === undefined) throw error; // after the result nothing is missed
  }
  if (answered !== undefined) return answered;
  throw new Failure("unavailable", "the call ended without a result", { reason: "OUTCOME_UNKNOWN" });
}
