import { type Ending, openEnding } from "../ending.ts";
import { startTimer } from "../timer.ts";

interface MovingDeadlineOptions {
  deadlineMs: number;
  /** How far progress puts it off at the most; absent for not at all. */
  latestMs?: number | undefined;
  /** What a call has after each progress; absent for what it has at its start. */
  timeoutMs?: number;
  /** Of the signal when the time is over. */
  reason?: () => unknown;
}

/** When one call is over: progress begins its time anew as far as the call says, and time stands still while a person is asked. */
export class MovingDeadline implements Disposable {
  readonly timeoutMs: number;
  /** When it is over, and when it is at the latest, as far as is known by now. */
  endsAtMs: number;
  latestMs: number;
  reason: () => unknown;
  readonly #ending: Ending;
  #stop = () => {};
  #pauses = 0;
  #pausedAtMs = 0;

  constructor(options: MovingDeadlineOptions, ...sources: readonly (AbortSignal | undefined)[]) {
    const { deadlineMs, latestMs, timeoutMs, reason } = options;
    this.timeoutMs = timeoutMs ?? deadlineMs - Date.now();
    this.endsAtMs = deadlineMs;
    this.latestMs = latestMs ?? deadlineMs;
    this.reason = reason ?? (() => undefined);
    this.#ending = openEnding(...sources);
    this.#start();
  }

  /** Aborts when the time is over, or as the first of the sources does. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  extend(): void {
    if (this.#pauses > 0) return;
    const endsAtMs = Math.max(this.endsAtMs, Math.min(this.latestMs, Date.now() + this.timeoutMs));
    if (endsAtMs === this.endsAtMs) return;
    this.endsAtMs = endsAtMs;
    this.#start();
  }

  /** Until it is disposed, no time goes by. */
  pause(): Disposable {
    if (this.#pauses === 0) this.#pausedAtMs = Date.now();
    this.#stop();
    this.#pauses += 1;
    return {
      [Symbol.dispose]: () => {
        this.#pauses -= 1;
        if (this.#pauses > 0) return;
        this.endsAtMs += Date.now() - this.#pausedAtMs;
        this.latestMs += Date.now() - this.#pausedAtMs;
        this.#start();
      },
    };
  }

  [Symbol.dispose](): void {
    this.#stop();
    this.#pauses += 1; // a pause that ends later starts nothing
    this.#ending[Symbol.dispose]();
  }

  #start(): void {
    this.#stop();
    if (this.#pauses > 0 || this.signal.aborted) return;
    this.#stop = startTimer(this.endsAtMs - Date.now(), () => this.#ending.end(this.reason()));
  }
}
