/**
 * Lets work begin in turns: each key has one piece of work under way at a time (or `maxOfKey`), and the keys that wait have their turns in
 * a circle. So one key that brings much work delays the others by one piece of it at most.
 *
 * There are other bounds on work, each with a rule of its own:
 * - The gateway's `ContentionLimiter` lets a principal that asks alone run everything at once, and only limits each while several ask. A
 *   request gives its place back after 10 ms: it waits for something else by then.
 * - The orchestrator's `Slots` bound the runs of a process, shared as `EqualParts`. A run that waits for another one lends its slot.
 * - The worker pool's `createPermits` bound the calls of its processes, shared in the same way, and may refuse those who would wait.
 */
export class RoundRobinQueue {
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #running: string[] = [];
  readonly #maxRunning: number;
  readonly #maxOfKey: number;

  constructor(maxRunning: number, maxOfKey = 1) {
    this.#maxRunning = maxRunning;
    this.#maxOfKey = maxOfKey;
  }

  /** An aborted signal ends the waiting, not the work, and what it says is thrown. */
  async run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#turnOf(key, signal);
    try {
      return await work();
    } finally {
      this.#goOn(key);
    }
  }

  /** Resolves when its turn begins, which lasts until that has passed. */
  async begin(key: string, untilOver: () => Promise<unknown>, signal?: AbortSignal): Promise<void> {
    await this.#turnOf(key, signal);
    void untilOver().finally(() => this.#goOn(key));
  }

  #turnOf(key: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const own = this.#waiting.get(key) ?? [];
    const turn = Promise.withResolvers<void>();
    const leave = () => {
      own.splice(own.indexOf(begin), 1);
      if (own.length === 0) this.#waiting.delete(key);
      turn.reject(signal?.reason);
    };
    const begin = () => {
      signal?.removeEventListener("abort", leave);
      turn.resolve();
    };
    signal?.addEventListener("abort", leave, { once: true });
    own.push(begin);
    this.#waiting.set(key, own);
    this.#goOn();
    return turn.promise;
  }

  #goOn(over?: string): void {
    if (over !== undefined) this.#running.splice(this.#running.indexOf(over), 1);
    for (const [key, own] of this.#waiting) {
      if (this.#running.length >= this.#maxRunning) return;
      if (this.#running.filter((one) => one === key).length >= this.#maxOfKey) continue;
      this.#running.push(key);
      own.shift()?.();
      this.#waiting.delete(key);
      if (own.length > 0) this.#waiting.set(key, own); // the last in the circle
    }
  }
}
