import type { InputRequired } from "#gen/toolbus/provider/v1/input_pb.ts";
import type { CallHeld, ExecuteToolRequest } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { boundedEvent } from "#runtime/results/bounded-event.ts";
import { delay } from "#runtime/time/delay.ts";
import { type Ending, openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { ProviderClient } from "../../../sessions/offers/provider-client.ts";
import { type Answer, answerFromProvider } from "../../answers/answer.ts";
import type { CallControl, CallEvent } from "../../in-flight.ts";

/** What a provider says at last, or until it is answered. */
export type Told = { kind: "answer"; answer: Answer } | { kind: "required"; required: InputRequired };

/** One stream of a provider's execution. It is left when it is disposed. */
export interface ProviderStream extends Disposable {
  /** Progress and logs go where the control says; one question at a time. */
  next(): Promise<Told>;
  /** Another stream of the call has taken over: this one's progress and logs are told nobody. */
  mute(): void;
}

export interface ProviderControl extends CallControl {
  /** Told how long the call may be without an instance. */
  readonly onHeld: (held: CallHeld) => void;
}

/** So many events of one call are heard in so long; a provider that tells more waits on its side of the stream. */
const PACE = { events: 100, perMs: 50 };

export function openProviderStream(
  client: ProviderClient,
  request: ExecuteToolRequest,
  control: ProviderControl,
): ProviderStream {
  const ending = openEnding(control.signal);
  const messages = client.callTool(request, { signal: ending.signal })[Symbol.asyncIterator]();
  let isMuted = false;
  let startedAt = performance.now();
  let heard = 1;

  async function next(): Promise<Told> {
    for (; ; heard++) {
      if (heard % PACE.events === 0) {
        await delay(PACE.perMs - (performance.now() - startedAt), control.signal);
        startedAt = performance.now();
      }
      const message = await messages.next();
      if (message.done)
        throw new Failure("data_loss", "the call ended without a result", { reason: "OUTCOME_UNKNOWN" });
      const { event } = message.value;
      if (event.case === "result") return { kind: "answer", answer: answerFromProvider(event.value) };
      if (event.case === "inputRequired") return { kind: "required", required: event.value };
      if (event.case === "held") control.onHeld(event.value);
      else if (event.case !== undefined && !isMuted) control.emit(boundedEvent(event satisfies CallEvent));
    }
  }

  return {
    next,
    mute() {
      isMuted = true;
    },
    [Symbol.dispose]: () => void leave(messages, ending),
  };
}

type Messages = AsyncIterator<unknown, unknown>;

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
