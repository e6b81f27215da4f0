import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { SessionCalls } from "../sessions/switch/session-calls.ts";
import type { AdmittedCall, Admitter, Facts, IdentifiedCall } from "./admission.ts";
import { type Answer, type Answers, canceled, failure } from "./answers/answer.ts";
import { decideDeadline } from "./execute/deadline.ts";
import type { Execution } from "./execute/execute.ts";
import type { CallControl, CallEvent, InFlightCalls } from "./in-flight.ts";
import type { Messages } from "./messages.ts";
import { type Records, timesOf } from "./records/records.ts";

/*
 * The one way of every call (KIND-1):
 *
 *   resolve ─▶ policy ─▶ validate ─▶ record ─▶ execute ─▶ answer
 *
 * The first three stand in admission.ts. A stage that says no ends the call with an error result for the model. What throws
 * is no tool's failure: the session is gone, the id belongs to another call, the stores cannot be reached.
 */

export interface CallParts {
  admission: Admitter;
  records: Records;
  messages: Messages;
  execution: Execution;
  answers: Answers;
  clock: Clock;
  inFlight: InFlightCalls;
  sessions: Pick<Sessions, "whenSettled">;
  sessionCalls: Pick<SessionCalls, "track">;
}

export interface CallOrigin {
  signal: AbortSignal;
  isLost: () => boolean;
}

export interface Calls {
  call(request: IdentifiedCall, origin: CallOrigin): AsyncIterable<CallEvent>;
}

export function createCalls(parts: CallParts): Calls {
  const { admission, records, messages, execution, answers, clock, inFlight, sessions, sessionCalls } = parts;

  async function run(request: IdentifiedCall, control: CallControl): Promise<Answer> {
    const known = request.context.recovering ? await records.recall(request, control.signal) : undefined;
    if (known !== undefined) return known;
    return sessions.whenSettled(request.sessionId, control.signal, () => decided(request, control));
  }

  /** The call is present in its session from before the session is read until it has its answer. */
  async function decided(request: IdentifiedCall, { signal, emit }: CallControl): Promise<Answer> {
    using tracked = sessionCalls.track(request.sessionId, request.callId);
    using ending = openEnding(signal, tracked.signal);
    const control = { signal: ending.signal, emit };
    const admitted = await admission.admit(request, control.signal);
    if (admitted.kind === "refused") return admitted.answer;
    control.signal.throwIfAborted();
    try {
      return await carryOut(admitted.call, control);
    } finally {
      records.release(request.callId);
    }
  }

  /** record ─▶ execute ─▶ answer */
  async function carryOut(call: AdmittedCall, control: CallControl): Promise<Answer> {
    const { entry, facts } = call;
    const now = clock.now();
    const deadline = decideDeadline(entry, now, call.runDeadline);
    const begun = await records.begin(entry, { ...facts, ...timesOf(entry, deadline, now) }, now, control.signal);
    if (begun.kind === "resolved") return begun.answer;
    if (begun.kind === "unrecorded" && inFlight.wasCanceled(facts.callId, facts.principal ?? "")) {
      return canceled(entry.effect);
    }
    const fault = begun.kind === "open" && !begun.isMine ? undefined : await shown(facts, begun.kind === "open");
    const prepared = { ...call, callId: facts.callId, begun, deadline };
    if (begun.kind === "open") {
      return fault ? records.abandon(facts.callId, fault) : execution.execute(prepared, control);
    }
    const { sessionId = "" } = facts;
    const given = fault ?? (await execution.execute(prepared, control));
    const answer = await answers.finish(entry.tool, given, sessionId);
    const standing = begun.kind === "begun" ? await finished({ callId: facts.callId, sessionId }, answer) : answer;
    messages.showResult(facts, standing);
    return standing;
  }

  async function finished({ callId, sessionId }: Record<"callId" | "sessionId", string>, answer: Answer) {
    return records.finish(callId, answer, await answers.recorded(answer, sessionId));
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

  return {
    call(request, origin) {
      const { callId, sessionId, runId, name, argumentsJson } = request;
      const identity = { sessionId, runId, name, argumentsJson };
      return inFlight.join({ callId, identity, ...origin }, (control) => run(request, control));
    },
  };
}
