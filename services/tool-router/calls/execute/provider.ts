import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { RunContextSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { InputKind, type InputResponses } from "#gen/toolbus/provider/v1/input_pb.ts";
import { ExecuteToolRequestSchema, type Scope } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Effect, LogLevel, ToolLogSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolQuestionsSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { Failure, isFailure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { startedNothing } from "#runtime/failure/not-started.ts";
import { wasLost } from "#runtime/rpc/nats/call/delivery.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";
import { filled } from "#runtime/schema/json-object.ts";
import { MovingDeadline } from "#runtime/time/deadline/moving-deadline.ts";
import { timedBy } from "#runtime/time/duration.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { FindProvider, ProviderClient } from "../../sessions/offers/provider-client.ts";
import { type Executor, executionBy, isResumable } from "../../tools/tool-set/executor.ts";
import type { ToolEntry } from "../../tools/tool-set/tool-set.ts";
import { type Answer, canceled, failure, outcomeUnknown } from "../answers/answer.ts";
import type { CallControl, CallEvent } from "../in-flight.ts";
import type { Begun, Records } from "../records/records.ts";
import { openProviderStream, type ProviderControl, type ProviderStream } from "./input/provider-stream.ts";
import type { AskingCall, CallersAnswers, Sample } from "./input/question.ts";
import type { Questions } from "./input/questions.ts";
import type { Deadline } from "./limits/deadline.ts";
import { createHolding, type Holding, takeOver } from "./provider-takeover.ts";

export interface ProviderCall {
  callId: string;
  entry: ToolEntry;
  executor: Extract<Executor, { kind: "provider" }>;
  scope: Scope;
  /** What its run leaves to it, and allows: for whatever calls further tools on its behalf. */
  context: MessageInitShape<typeof RunContextSchema>;
  argumentsJson: string;
  deadline: Deadline;
  /** What whoever calls has answered on the call's behalf. */
  answers: CallersAnswers;
  /** The run's deadline, which nothing outlasts. */
  runDeadline: number | undefined;
  begun: Exclude<Begun, { kind: "resolved" }>;
}

/** Models of agents on behalf of a call, and what they used there. */
export type Sampling = (call: Pick<ProviderCall, "callId" | "scope" | "context" | "runDeadline">) => {
  sample: Sample;
  used: () => Pick<Answer, "usage">;
};

export interface ProvidersOptions {
  sampling: Sampling;
  questions: Questions;
  records: Pick<Records, "suspend" | "resume">;
  find: FindProvider;
  /**
   * How long after a call's time its provider may still speak, by provider: each ends its calls itself, with a better word
   * than the router has. A worker's installation counts as no call time.
   */
  graceMs: (provider: string) => number;
}

/** KIND-2: calls of everything that speaks the provider contract; progress and logs go through as they come. */
export function createProviderExecution(options: ProvidersOptions) {
  const { questions, records } = options;

  /** questions-3 of questions.ts: until there is a result, whatever is asked for is asked, and the call is sent again with the answers. */
  async function attempt(client: ProviderClient, call: ProviderCall, control: Control): Promise<Answer> {
    using streams = new DisposableStack();
    let suspended = call.begun.kind === "begun" ? call.begun.suspended : undefined;
    let required = suspended?.required;
    let held: ProviderStream | undefined;
    let responses: InputResponses | undefined;
    let hasBegun = false; // it was held open once
    const refused = (text: string) =>
      hasBegun && call.entry.effect !== Effect.PURE ? outcomeUnknown(text) : failure(text);
    try {
      for (let round = 0; ; round++) {
        if (required !== undefined) {
          hasBegun ||= required.live;
          const { length } = required.requests;
          if (round === MOST_ROUNDS) return refused(`it asked for something more than ${MOST_ROUNDS} times`);
          if (length > MOST_AT_ONCE && required !== suspended?.required)
            return refused(`it asked for ${length} answers at once, over the limit of ${MOST_AT_ONCE}`);
          using _ = control.limit.pause();
          const isKept = call.begun.kind === "begun" && !required.live;
          if (isKept) suspended ??= await records.suspend(call.callId, required);
          const answered = await questions.answer(asking(call, control), required, held, control.signal);
          if (answered.kind === "answer") return answered.answer;
          if (answered.kind === "required") {
            ({ required } = answered);
            continue;
          }
          const elsewhere = suspended && (await records.resume(call.callId, suspended, control.signal));
          if (elsewhere !== undefined) return elsewhere;
          suspended = undefined;
          ({ responses } = answered);
        }
        const stream = streams.use(openProviderStream(client, requestOf(call, control, responses), control));
        const told = await stream.next();
        held?.mute();
        if (told.kind === "answer") return told.answer;
        ({ required } = told);
        held = required.live ? stream : undefined;
      }
    } catch (error) {
      if (!hasBegun || !startedNothing(error)) throw error;
      throw new Failure("data_loss", messageFromUnknown(error), { reason: "OUTCOME_UNKNOWN", cause: error });
    }
  }

  async function execute(call: ProviderCall, control: CallControl): Promise<Answer> {
    const { provider } = call.executor;
    const client = options.find(provider);
    if (client === undefined) return failure(`there is no provider ${JSON.stringify(provider)}`);
    const graceMs = options.graceMs(provider);
    const { at, latestAt, timeoutMs } = call.deadline;
    const times = {
      deadlineMs: at + graceMs,
      latestMs: latestAt && latestAt + graceMs,
      timeoutMs: timeoutMs + graceMs,
    };
    using runEnd = call.runDeadline === undefined ? undefined : timeoutSignal(call.runDeadline + 1_000 - Date.now());
    using limit = new MovingDeadline({ ...times, reason: timeUp }, control.signal, runEnd);
    const emit = (event: CallEvent) => {
      if (event.case === "progress") limit.extend();
      control.emit(event);
    };
    const { sample, used } = options.sampling(call);
    const holding = createHolding(wasBegun(call) ? START_MS : 0);
    const ends = { ...control, emit, signal: limit.signal, limit, graceMs, sample, onHeld: holding.onHeld };
    let attemptCount = 0;
    const tryOnce: TryOnce = (options = {}) => {
      attemptCount += 1;
      return attempt(client, call, { ...ends, ...options });
    };
    const answer = await answered(call, { tryOnce, holding, signal: limit.signal }, control, limit);
    return { execution: executionBy(call.executor, call.entry.tool, attemptCount), ...answer, ...used() };
  }

  async function answered(
    call: ProviderCall,
    trying: Trying,
    control: CallControl,
    limit: MovingDeadline,
  ): Promise<Answer> {
    try {
      return await tried(call, trying); // all attempts are under the same limit
    } catch (error) {
      if (control.signal.aborted) return canceled(call.entry.effect, control.signal.reason);
      if (limit.signal.aborted)
        return failure(
          `Tool ${JSON.stringify(call.entry.reference)} timed out after ${timeOf(call)}`,
          "DEADLINE_EXCEEDED",
        );
      throw error;
    }
  }

  return { execute };
}

/** KIND-4: the time that the call was given. A provider knows only what was left of it when it was asked. */
function timeOf({ deadline: { of, timeoutMs } }: ProviderCall): string {
  return of === undefined ? `${timeoutMs}ms` : `${timeoutMs}ms (${of} time)`;
}

type TryOnce = (options?: Pick<Control, "isResumed">) => Promise<Answer>;

interface Trying {
  readonly tryOnce: TryOnce;
  readonly holding: Holding;
  /** Aborts when nothing more is to be tried. */
  readonly signal: AbortSignal;
}

/** Rejects only when nothing more is to be tried. */
async function tried(call: ProviderCall, trying: Trying): Promise<Answer> {
  try {
    return await trying.tryOnce({ isResumed: wasBegun(call) });
  } catch (error) {
    if (trying.signal.aborted) throw error;
    return lost(call, trying, error);
  }
}

/**
 * LOOP-14: what may be repeated is tried once more, on whoever serves the provider by then or within START_MS, unless its time is over;
 * what may be resumed, as provider-takeover.ts says. What changes something and may have happened is told as unknown: the model's next
 * try has an id of its own, under which a provider knows nothing of this one.
 */
async function lost(call: ProviderCall, { tryOnce, holding, signal }: Trying, cause: unknown): Promise<Answer> {
  const text = textOf(call, cause);
  const wasNotStarted = startedNothing(cause) && !wasBegun(call);
  if (wasNotStarted && !isFailure(cause, "unavailable")) return failure(text);
  const isOver = isFailure(cause, "deadline_exceeded");
  const isOnce = call.entry.effect === Effect.AT_MOST_ONCE;
  const isTold = isOnce || (cause instanceof Failure && cause.reason === "CALL_NOT_STARTED");
  const wasCut = cause instanceof Failure && wasLost(cause.cause); // with its request not sent whole, whoever serves by then starts it
  if (wasNotStarted && isTold && !wasCut) return failure(`nothing was started: ${text}`);
  const isResumed = isResumable(call.executor) && isFailure(cause, "unavailable") && !wasNotStarted;
  const ended = (why: string, isUntouched: boolean) => {
    if (isUntouched) return failure(`nothing was started: ${why}`);
    const reason = isOver ? "DEADLINE_EXCEEDED" : undefined;
    return call.entry.effect === Effect.PURE ? failure(why, reason) : outcomeUnknown(why, reason);
  };
  const isVain = cause instanceof Failure && cause.reason === "BUS_UNAVAILABLE" && callPatience.isOver;
  const isLast = isOver || isVain || (isOnce && !wasNotStarted);
  if (isLast && !isResumed) return ended(text, wasNotStarted);
  try {
    if (isResumed) return await takeOver(() => tryOnce({ isResumed }), holding, signal);
    if (wasNotStarted) return await tryOnce();
    return await retryWhile(isAbsent, tryOnce, { initialMs: 50, maxMs: 500, patienceMs: START_MS, signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return ended(textOf(call, error), wasNotStarted && startedNothing(error));
  }
}

function textOf(call: ProviderCall, error: unknown): string {
  const code = error instanceof Failure ? error.code : "unknown";
  const given = code === "deadline_exceeded" ? `; it had ${timeOf(call)}` : "";
  return `provider ${JSON.stringify(call.executor.provider)}: ${code}: ${messageFromUnknown(error)}${given}`;
}

/** So long the next instance of a provider may need to start, where the only one was lost; what a lost router was told is not known. */
const START_MS = 5_000;

/** Whether nobody serves the provider. */
function isAbsent(error: unknown): boolean {
  return isFailure(error, "unavailable") && error.reason === "CALL_NOT_STARTED";
}

/** Whether a router that is lost had asked the provider for it. */
function wasBegun({ begun }: ProviderCall): boolean {
  return begun.kind === "begun" && begun.resumed === true;
}

const timeUp = () => new DOMException("the time is over", "TimeoutError");

interface Control extends ProviderControl {
  /** Later than what the provider is told, by its grace. */
  readonly limit: MovingDeadline;
  readonly graceMs: number;
  readonly sample: Sample;
  /** Whether an instance that is lost was asked for the call before. */
  readonly isResumed?: boolean;
}

/** So often a call may ask for something, and for so many answers at once: each is a record, and a question in a space. */
const MOST_ROUNDS = 20;
const MOST_AT_ONCE = 100;

function requestOf(
  call: ProviderCall,
  { limit, graceMs, isResumed }: Control,
  inputResponses: InputResponses | undefined,
) {
  const { source, tool } = call.executor;
  const { config, builtinPolicy } = call.entry.tool;
  const latestMs = limit.latestMs - graceMs - Date.now();
  return create(ExecuteToolRequestSchema, {
    callId: call.callId,
    scope: call.scope,
    runContext: encodeRunContext(call.context),
    tool,
    argumentsJson: call.argumentsJson,
    ...(isResumed && { resumed: true }),
    ...timedBy(limit.endsAtMs - graceMs),
    ...(call.deadline.latestAt !== undefined && { longestTimeout: durationFromMs(Math.max(0, Math.floor(latestMs))) }),
    ...filled({ source, config, builtinPolicy, inputResponses }),
    acceptedInputs: ACCEPTED_INPUTS,
  });
}

const ACCEPTED_INPUTS = [InputKind.FORM, InputKind.URL, InputKind.SAMPLING];

function asking(call: ProviderCall, { emit, sample }: Control): AskingCall {
  const { callId, entry, scope, runDeadline, answers } = call;
  const note = (message: string) =>
    emit({ case: "log", value: create(ToolLogSchema, { level: LogLevel.WARN, message }) });
  const tellAsked = (questions: ToolCall[]) =>
    emit({ case: "questions", value: create(ToolQuestionsSchema, { questions }) });
  return { callId, tool: entry.reference, scope, runDeadline, answers, note, sample, tellAsked };
}
