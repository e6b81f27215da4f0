import { startTimer } from "#runtime/time/timer.ts";

/** When one call is over: progress begins its time anew as far as the call says, and time stands still while a person is asked. */
export class MovingDeadline implements Disposable {
  readonly #over = new AbortController();
  /** What the call has at its start, and after each progress. */
  readonly timeoutMs: number;
  /** When it is over at the latest, as far as is known by now. */
  latestMs: number;
  #endsAtMs: number;
  #stop = () => {};
  #pauses = 0;
  #pausedAtMs = 0;

  constructor({ deadlineMs, latestMs }: { deadlineMs: number; latestMs?: number | undefined }) {
    this.timeoutMs = deadlineMs - Date.now();
    this.#endsAtMs = deadlineMs;
    this.latestMs = latestMs ?? deadlineMs;
    this.#start();
  }

  /** Aborts when the time is over. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  extend(): void {
    this.#endsAtMs = Math.max(this.#endsAtMs, Math.min(this.latestMs, Date.now() + this.timeoutMs));
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
        this.#endsAtMs += Date.now() - this.#pausedAtMs;
        this.latestMs += Date.now() - this.#pausedAtMs;
        this.#start();
      },
    };
  }

  [Symbol.dispose](): void {
    this.#stop();
    this.#pauses += 1; // a pause that ends later starts nothing
  }

  #start(): void {
    this.#stop();
    if (this.#pauses === 0) this.#stop = startTimer(Math.max(0, this.#endsAtMs - Date.now()), () => this.#over.abort());
  }
}
