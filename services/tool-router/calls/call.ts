import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { startedNothing } from "#runtime/failure/not-started.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { SessionCalls } from "../sessions/switch/session-calls.ts";
import type { Admission, AdmittedCall, Admitter, Facts, IdentifiedCall } from "./admission.ts";
import { type Answer, type Answers, canceled, failure } from "./answers/answer.ts";
import type { Execution } from "./execute/execute.ts";
import { decideDeadline } from "./execute/limits/deadline.ts";
import type { CarryOutControl } from "./in-flight.ts";
import type { Messages } from "./messages.ts";
import { type Records, timesOf } from "./records/records.ts";

/*
 * The one way of every call (KIND-1):
 *
 *   resolve ─▶ policy ─▶ validate ─▶ record ─▶ execute ─▶ answer
 *
 * The first three are in admission.ts. A stage that refuses ends the call with an error result for the model. An exception is no
 * failure of a tool: the session does not exist, the id belongs to another call, or a store cannot be reached.
 */

export interface CallParts {
  admission: Admitter;
  records: Records;
  messages: Messages;
  execution: Execution;
  answers: Answers;
  clock: Clock;
  sessions: Pick<Sessions, "settled">;
  sessionCalls: Pick<SessionCalls, "track">;
}

/** Carries out a call that no other request with its id has begun. */
export type CarryOut = (request: IdentifiedCall, control: CarryOutControl) => Promise<Answer>;

export function createCarryOut(parts: CallParts): CarryOut {
  const { admission, records, messages, execution, answers, clock, sessions, sessionCalls } = parts;

  async function carryOut(request: IdentifiedCall, control: CarryOutControl): Promise<Answer> {
    const known = request.context.recovering ? await records.recall(request, control.signal) : undefined;
    if (known !== undefined) return known;
    for (;;) {
      const answer = await answerUnlessSwitching(request, control);
      if (answer !== undefined) return answer;
      await sessions.settled(request.sessionId, control.signal);
    }
  }

  /** The session knows of the call from before it is read until the call has its answer. */
  async function answerUnlessSwitching(
    request: IdentifiedCall,
    { signal, ...others }: CarryOutControl,
  ): Promise<Answer | undefined> {
    using tracked = sessionCalls.track(request.sessionId, request.callId, signal);
    const control = { ...others, signal: tracked.signal };
    const admitted = await admittedAgain(request, control.signal);
    if (admitted.kind === "switching") return undefined;
    if (admitted.kind === "refused") return admitted.answer;
    control.onResolved(admitted.call.facts.tool ?? "");
    control.signal.throwIfAborted();
    try {
      return await execute(admitted.call, control);
    } finally {
      records.release(request.callId);
    }
  }

  /** What is repeated after a crash and not admitted any more was begun perhaps, and has its end. */
  async function admittedAgain(request: IdentifiedCall, signal: AbortSignal): Promise<Admission> {
    const ended = async () => (request.context.recovering ? records.endBegun(request, signal) : undefined);
    try {
      const admitted = await admission.admit(request, signal);
      return admitted.kind === "refused" ? { kind: "refused", answer: (await ended()) ?? admitted.answer } : admitted;
    } catch (error) {
      const answer = startedNothing(error) ? await ended() : undefined;
      if (answer === undefined) throw error;
      return { kind: "refused", answer };
    }
  }

  /** record ─▶ execute ─▶ answer */
  async function execute(call: AdmittedCall, control: CarryOutControl): Promise<Answer> {
    const { entry, facts } = call;
    const now = clock.now();
    const deadline = decideDeadline(entry, now, { deadline: call.runDeadline, isOfRun: facts.runId !== "" });
    await records.requireRoom(entry, facts);
    const isKept = entry.effect === Effect.AT_MOST_ONCE; // any other is called again, with its arguments
    const argumentsReference = isKept ? await answers.storeArguments(call.argumentsJson, facts.sessionId ?? "") : "";
    const recorded = { ...facts, argumentsReference, ...timesOf(entry, deadline, now) };
    const begun = await records.begin(entry, recorded, now, control);
    if (begun.kind === "resolved") return begun.answer;
    if (begun.kind === "unrecorded" && control.isCanceledFor(facts.principal ?? "")) return canceled(entry.effect);
    const fault = begun.kind === "open" && !begun.isMine ? undefined : await shown(facts, begun.kind === "open");
    const prepared = { ...call, callId: facts.callId, begun, deadline };
    if (begun.kind === "open") {
      if (fault) return records.abandon(facts.callId, fault);
      records.release(facts.callId); // now that it is shown, a watcher may have it
      return execution.execute(prepared, control);
    }
    const { sessionId = "", principal = "" } = facts;
    const given = fault ?? (await execution.execute(prepared, control));
    const answer = await answers.finish(entry.tool, given, { sessionId, principal, isRepeatable: !isKept });
    if (begun.kind === "begun") return records.finish(facts.callId, answer); // its due work shows it
    messages.showResult(facts, answer);
    return answer;
  }

  /** A call that cannot be shown is not executed: its answer is the fault. */
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

  return carryOut;
}
