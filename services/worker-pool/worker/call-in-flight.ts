import { RoundRobinQueue } from "#runtime/collections/turns/round-robin-queue.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { Answer } from "../calls/answer.ts";
import type { WrittenLine } from "../logs/log-line.ts";
import { type Ask, type Frame, MOST_ASKS, type Progress } from "./frames.ts";
import { createLastWords } from "./last-words.ts";

/** Who is told what happens in a call. */
export interface CallListener {
  onProgress(progress: Progress): void;
  onLine(line: WrittenLine): void;
  /** The signal aborts when nobody waits for the call any more. */
  onAsk(ask: Ask, signal: AbortSignal): Promise<Answer>;
}

type AnswerFrame = Extract<Frame, { logLines: number }>;

const LOG_WAIT_MS = 250;
/** SEC-5: so much of what one call asks is kept, of a worker that holds nothing back. */
const MOST_KEPT_ASKS = 1_000;
const MOST_KEPT_CHARACTERS = 64 * 1024 * 1024;
const TOO_MUCH = `the call asks more than ${MOST_KEPT_ASKS} times at once, or with more than ${MOST_KEPT_CHARACTERS} characters`;

/** A call on a worker, from its request on until its function has ended: WORKER1, WORKER2 and WORKER4 of `worker.ts`. */
export class CallInFlight {
  readonly #answer = Promise.withResolvers<Answer>();
  readonly #ended = Promise.withResolvers<void>();
  /** Rejects with the signal's reason, or with `unavailable`, reason WORKER_CRASHED, when the process ends. */
  readonly answer = this.#answer.promise;
  /** When the function's place on the worker is free again. */
  readonly ended = this.#ended.promise;
  readonly lastWords = createLastWords();
  readonly function: string;
  isGivenUp = false;
  readonly #listener: CallListener;
  /** Made when something is asked: most calls ask nothing. */
  #over: AbortController | undefined;
  #turns: RoundRobinQueue | undefined;
  #asks = 0;
  #charactersKept = 0;
  #linesSeen = 0;
  #held: { frame: AnswerFrame; timer: NodeJS.Timeout } | undefined;

  constructor(name: string, listener: CallListener) {
    this.function = name;
    this.#listener = listener;
  }

  tellProgress(progress: Progress): void {
    if (!this.isGivenUp) this.#listener.onProgress(progress);
  }

  /** What is asked in it, and not answered by its end, is canceled. */
  async ask(ask: Ask): Promise<Answer> {
    const characters = Object.values(ask).reduce((sum, text) => sum + text.length, 0);
    const isTooLarge = this.#charactersKept + characters > MOST_KEPT_CHARACTERS;
    if (this.#asks >= MOST_KEPT_ASKS || (this.#asks >= MOST_ASKS && isTooLarge)) throw new Error(TOO_MUCH);
    this.#over ??= new AbortController();
    const { signal } = this.#over;
    this.#turns ??= new RoundRobinQueue(MOST_ASKS, MOST_ASKS);
    this.#asks += 1;
    this.#charactersKept += characters;
    try {
      return await this.#turns.run("", () => this.#listener.onAsk(ask, signal), signal);
    } finally {
      this.#asks -= 1;
      this.#charactersKept -= characters;
    }
  }

  tellLine(line: WrittenLine): void {
    this.#linesSeen += 1;
    this.lastWords.add(line.message);
    this.#listener.onLine(line);
  }

  /** WORKER4. The answer is held until its log lines are read, or for a moment at most. */
  hold(frame: AnswerFrame, onLate: () => void): void {
    this.#held = { frame, timer: setTimeout(onLate, LOG_WAIT_MS) };
  }

  get isAnswered(): boolean {
    return this.#held !== undefined;
  }

  /** Whether there is an answer whose log lines are all read. */
  get hasWholeAnswer(): boolean {
    return this.#held !== undefined && this.#linesSeen >= this.#held.frame.logLines;
  }

  /** Gives the answer that is held, its error without what is secret. */
  settle(redact: (text: string) => string): void {
    if (!this.#held) return;
    const { frame, timer } = this.#held;
    clearTimeout(timer);
    if (frame.kind === "result") this.#answer.resolve({ kind: "result", resultJson: frame.resultJson });
    if (frame.kind === "error") this.#answer.resolve({ kind: "error", error: redact(frame.error) });
  }

  /** WORKER2. */
  giveUp(reason: unknown): void {
    this.isGivenUp = true;
    this.#over?.abort(reason);
    this.#answer.reject(reason);
  }

  fail(error: Error): void {
    clearTimeout(this.#held?.timer);
    this.#answer.reject(error);
    this.end();
  }

  /** Its place on the worker is free, or given up with the worker. */
  end(): void {
    this.#over?.abort(new Failure("canceled", "the call that asked is over", { reason: "CANCELED" }));
    this.#ended.resolve();
  }
}
