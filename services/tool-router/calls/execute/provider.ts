import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { RunContextSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import {
  ExecuteToolRequestSchema,
  type ExecuteToolResponse,
  type Scope,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { startedNothing } from "#runtime/failure/not-started.ts";
import { boundedEvent } from "#runtime/results/bounded-event.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";
import { delay } from "#runtime/time/delay.ts";
import { timedBy } from "#runtime/time/duration.ts";
import { type Ending, openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { FindProvider, ProviderClient } from "../../sessions/offers/provider-client.ts";
import type { Executor } from "../../tools/tool-set/executor.ts";
import type { ToolEntry } from "../../tools/tool-set/tool-set.ts";
import { type Answer, answerFromProvider, canceled, failure, outcomeUnknown } from "../answers/answer.ts";
import type { CallControl, CallEvent } from "../in-flight.ts";
import type { Deadline } from "./deadline.ts";

export interface ProviderCall {
  callId: string;
  entry: ToolEntry;
  executor: Extract<Executor, { kind: "provider" }>;
  scope: Scope;
  context: MessageInitShape<typeof RunContextSchema>;
  argumentsJson: string;
  deadline: Deadline;
  /** The run's deadline, which nothing outlasts. */
  runDeadline: number | undefined;
}

export interface ProvidersOptions {
  find: FindProvider;
  /**
   * How long after a call's time its provider may still speak, by provider: each ends its calls itself, with a better word
   * than the router has. A worker's installation counts as no call time.
   */
  graceMs: (provider: string) => number;
}

/** KIND-2: calls of everything that speaks the provider contract; progress and logs go through as they come. */
export function createProviderExecution(options: ProvidersOptions) {
  async function execute(call: ProviderCall, control: CallControl): Promise<Answer> {
    const { provider } = call.executor;
    const client = options.find(provider);
    if (client === undefined) return failure(`there is no provider ${JSON.stringify(provider)}`);
    const graceMs = options.graceMs(provider);
    const limit = openLimit(call, graceMs);
    using _ = limit;
    using ending = openEnding(control.signal, limit.signal);
    const emit = (event: CallEvent) => {
      if (event.case === "progress") limit.extend();
      control.emit(event);
    };
    const ends = { ...control, emit, signal: ending.signal };
    const tryOnce: TryOnce = ({ isResumed } = {}) =>
      attempt(client, { ...call, deadline: { ...call.deadline, at: limit.at }, isResumed }, ends);
    try {
      return await tryOnce();
    } catch (error) {
      if (control.signal.aborted) return canceled(call.entry.effect, control.signal.reason);
      if (limit.signal.aborted)
        return failure(
          `Tool ${JSON.stringify(call.entry.reference)} timed out after ${call.deadline.timeoutMs}ms${whose(call)}`,
          "DEADLINE_EXCEEDED",
        );
      return await lost(call, tryOnce, error); // under the same limit
    }
  }

  return { execute };
}

function whose({ deadline: { of } }: ProviderCall): string {
  return of === undefined ? "" : ` (${of} time)`;
}

/** The end of a call's time. Each progress puts it off, where the call says how far. */
function openLimit({ deadline, runDeadline }: ProviderCall, graceMs: number) {
  const over = new AbortController();
  const end = () => over.abort(new DOMException("the time is over", "TimeoutError"));
  const startUntil = (at: number) => {
    const untilMs = Math.min(at + graceMs, (runDeadline ?? at + graceMs) + 1_000);
    return startTimer(Math.max(1, untilMs - Date.now()), end);
  };
  let { at } = deadline;
  let stop = startUntil(at);
  return {
    signal: over.signal,
    /** As of the last progress. */
    get at() {
      return at;
    },
    extend() {
      const { latestAt } = deadline;
      if (latestAt === undefined || over.signal.aborted) return;
      stop();
      at = Math.min(latestAt, Date.now() + deadline.timeoutMs);
      stop = startUntil(at);
    },
    [Symbol.dispose]: () => stop(),
  };
}

type TryOnce = (options?: { isResumed?: boolean }) => Promise<Answer>;

/**
 * LOOP-14: what may be repeated, or resumed, is tried once more, on whoever serves the provider by then. What changes something and may have
 * happened is told as unknown: the model's next try has an id of its own, under which a provider knows nothing of this one.
 */
async function lost(call: ProviderCall, tryOnce: TryOnce, cause: unknown): Promise<Answer> {
  const code = cause instanceof Failure ? cause.code : "unknown";
  const whoseTime = code === "deadline_exceeded" ? whose(call) : "";
  const text = `provider ${JSON.stringify(call.executor.provider)}: ${code}: ${messageFromUnknown(cause)}${whoseTime}`;
  const wasNotStarted = startedNothing(cause);
  if (wasNotStarted && code !== "unavailable") return failure(text);
  const isNotSent = cause instanceof Failure && cause.reason === "CALL_NOT_STARTED";
  if (isNotSent || (wasNotStarted && call.entry.effect === Effect.AT_MOST_ONCE)) {
    return failure(`nothing was started: ${text}`);
  }
  const isResumed = call.executor.isResumable === true && code === "unavailable" && !wasNotStarted;
  if (call.entry.effect === Effect.AT_MOST_ONCE && !isResumed) return outcomeUnknown(text);
  try {
    return await tryOnce({ isResumed });
  } catch (error) {
    const text = `provider ${JSON.stringify(call.executor.provider)}: ${messageFromUnknown(error)}`;
    if (wasNotStarted && startedNothing(error)) return failure(`nothing was started: ${text}`);
    return call.entry.effect === Effect.PURE ? failure(text) : outcomeUnknown(text);
  }
}

interface Attempted extends ProviderCall {
  /** Whether an instance that is lost was asked for the call before. */
  isResumed: boolean | undefined;
}

async function attempt(client: ProviderClient, call: Attempted, control: CallControl): Promise<Answer> {
  const { source, tool } = call.executor;
  const { config, builtinPolicy } = call.entry.tool;
  const { latestAt } = call.deadline;
  const request = create(ExecuteToolRequestSchema, {
    callId: call.callId,
    scope: call.scope,
    runContext: encodeRunContext(call.context),
    tool,
    argumentsJson: call.argumentsJson,
    ...(call.isResumed && { resumed: true }),
    ...timedBy(call.deadline.at),
    ...(latestAt !== undefined && { longestTimeout: durationFromMs(Math.max(0, Math.floor(latestAt - Date.now()))) }),
    ...(source && { source }),
    ...(config && { config }),
    ...(builtinPolicy && { builtinPolicy }),
  });
  const ending = openEnding(control.signal);
  const messages = client.callTool(request, { signal: ending.signal })[Symbol.asyncIterator]();
  try {
    return await resultOf(messages, control);
  } finally {
    void leave(messages, ending);
  }
}

/** So many events of one call are heard in so long; a provider that tells more waits on its side of the stream. */
const PACE = { events: 100, perMs: 50 };

async function resultOf(messages: Messages, control: CallControl): Promise<Answer> {
  let startedAt = performance.now();
  for (let heard = 1; ; heard++) {
    if (heard % PACE.events === 0) {
      await delay(Math.max(0, PACE.perMs - (performance.now() - startedAt)), control.signal);
      startedAt = performance.now();
    }
    const next = await messages.next();
    if (next.done) throw new Failure("data_loss", "the call ended without a result", { reason: "OUTCOME_UNKNOWN" });
    const { event } = next.value;
    if (event.case === "result") return answerFromProvider(event.value);
    if (event.case !== undefined) control.emit(boundedEvent(event satisfies CallEvent));
  }
}

type Messages = AsyncIterator<ExecuteToolResponse, unknown>;

/** How long a stream may go on after its result. */
const LEAVING_MS = 1_000;

/**
 * Reads the stream to its end, which follows its result at once, and cuts one that goes on: Connect's clients are left by
 * their signal alone, and until then stream and span stay open.
 */
async function leave(messages: Messages, ending: Ending): Promise<void> {
  using _ = ending;
  const stop = startTimer(LEAVING_MS, () =>
    ending.end(new Failure("canceled", "the call has its result", { reason: "CANCELED" })),
  );
  try {
    while (!(await messages.next()).done);
  } catch {
    // cut, or broken after its result: the call has its answer
  } finally {
    stop();
  }
}
