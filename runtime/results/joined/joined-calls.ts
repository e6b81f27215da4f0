import type { InputRequired } from "#gen/toolbus/provider/v1/input_pb.ts";
import type { ProvidedResult } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { boundedEvent, type ToldByTool } from "../bounded-event.ts";

/** What came of an execution: a result, or what the call needs before it is executed again. */
export type Executed = { case: "result"; value: ProvidedResult } | { case: "inputRequired"; value: InputRequired };

export type CallEvent = ToldByTool | Executed;

type Outcome = { last: Executed } | { error: unknown };

/** Made once: most calls end with nobody who hears it. */
const CALL_ENDED = new Failure("canceled", "the call that it was asked for has ended", { reason: "CANCELED" });

/** A call, and all who read it. When the last reader leaves before its end, it is abandoned. */
export class JoinedCall {
  readonly #maxEvents: number;
  /** Progress and logs, of which only the last are kept. */
  readonly #events: CallEvent[] = [];
  /** Their length together. */
  #length = 0;
  /** How many came before the first of `#events`. */
  #forgotten = 0;
  #outcome: Outcome | undefined;
  #readers = 0;
  readonly #over = new AbortController();
  readonly #changes = createChanges();

  constructor(maxEvents = 256) {
    this.#maxEvents = maxEvents;
  }

  /** Aborts when nobody waits for the call any more, or it has ended. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get isAbandoned(): boolean {
    return this.signal.aborted && !this.#outcome;
  }

  tell(event: CallEvent): void {
    if (this.#outcome) return;
    const kept = event.case === "progress" || event.case === "log" ? boundedEvent(event) : event;
    this.#length += lengthOf(kept);
    this.#events.push(kept);
    while (this.#events.length > this.#maxEvents || this.#length > MAX_LENGTH) {
      this.#length -= lengthOf(this.#events.shift()!);
      this.#forgotten += 1;
    }
    this.#changes.tell();
  }

  /** Gives the length of what is kept to be read again: nothing but what ended with a result. */
  end(outcome: Outcome): number | undefined {
    this.#outcome = outcome;
    this.#over.abort(CALL_ENDED);
    this.#changes.tell();
    if (!("last" in outcome) || outcome.last.case !== "result") return undefined;
    return this.#length + lengthOf(outcome.last);
  }

  /** What is told, from the beginning or from now on, then the last event; throws what the call failed with. */
  async *read(signal: AbortSignal, { fromNow = false } = {}): AsyncGenerator<CallEvent> {
    this.#readers += 1;
    try {
      for (let seen = fromNow ? this.#forgotten + this.#events.length : 0; ; ) {
        using change = this.#changes.next();
        for (seen = Math.max(seen, this.#forgotten); seen < this.#forgotten + this.#events.length; seen++) {
          const event = this.#events[seen - this.#forgotten];
          if (event) yield event;
        }
        const outcome = this.#outcome;
        if (outcome && "error" in outcome) throw outcome.error;
        if (outcome) {
          yield outcome.last;
          return;
        }
        await unlessAborted(change.happened, signal);
      }
    } finally {
      this.#readers -= 1;
      if (this.#readers === 0 && !this.#outcome)
        this.#over.abort(new Failure("canceled", "nobody waits for this call any more", { reason: "CANCELED" }));
    }
  }
}

/** Of the progress and logs of a call that are kept. */
const MAX_LENGTH = 2 ** 20;

/** What an event without a text takes. */
const EVENT_LENGTH = 200;

function lengthOf({ value, case: kind }: CallEvent): number {
  if (kind === "log") return EVENT_LENGTH + value.message.length + value.fieldsJson.length;
  if (kind === "progress") return EVENT_LENGTH + value.message.length;
  if (kind !== "result") return EVENT_LENGTH;
  return value.content.reduce(
    (sum, { blockJson, data }) => sum + blockJson.length + data.length,
    EVENT_LENGTH + value.outputJson.length,
  );
}

/** How long a result is kept for a repeated question. */
const RETENTION_MS = 60_000;

/**
 * The calls of a provider. A second call under the same key joins the first, or is given its result for a while: the oldest results
 * are forgotten. What was abandoned is not joined, and what failed or is too long is not kept: whether it may be repeated, others decide.
 */
export class JoinedCalls<C extends JoinedCall> {
  readonly #calls = new Map<string, C>();
  readonly #limits: { maxRetained: number; maxRetainedLength: number };
  readonly #retained: { key: string; call: C; length: number; untilMs: number }[] = [];
  #retainedLength = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: { maxRetained: number; maxRetainedLength: number }) {
    this.#limits = limits;
  }

  find(key: string): C | undefined {
    this.#forgetOld();
    const call = this.#calls.get(key);
    return call?.isAbandoned ? undefined : call;
  }

  /** The call is to be read at once: only a reader that leaves abandons it. */
  start(key: string, call: C, work: (call: C) => Promise<Executed>): C {
    this.#calls.set(key, call);
    const end = (outcome: Outcome) => {
      const { isAbandoned } = call;
      const length = call.end(outcome);
      if (isAbandoned || length === undefined || length > this.#limits.maxRetainedLength) this.#forget(key, call);
      else this.#retain(key, call, length);
    };
    work(call).then(
      (last) => end({ last }),
      (error: unknown) => end({ error }),
    );
    return call;
  }

  #retain(key: string, call: C, length: number): void {
    this.#retained.push({ key, call, length, untilMs: performance.now() + RETENTION_MS });
    this.#retainedLength += length;
    this.#forgetOld();
  }

  /** Now, and later what is left, also where no call comes any more. */
  #forgetOld(): void {
    const { maxRetained, maxRetainedLength } = this.#limits;
    const now = performance.now();
    for (let [oldest] = this.#retained; oldest; [oldest] = this.#retained) {
      const isTooMuch = this.#retained.length > maxRetained || this.#retainedLength > maxRetainedLength;
      if (!isTooMuch && oldest.untilMs > now) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.#forgetOld();
        }, RETENTION_MS).unref();
        return;
      }
      this.#retained.shift();
      this.#retainedLength -= oldest.length;
      this.#forget(oldest.key, oldest.call);
    }
  }

  #forget(key: string, call: C): void {
    if (this.#calls.get(key) === call) this.#calls.delete(key);
  }
}
