import { performance } from "node:perf_hooks";

interface FailedCall {
  readonly error: unknown;
  /** On the clock of `performance.now()`, in milliseconds. */
  readonly startedAtMs: number;
}

export interface Load {
  readonly answered: number;
  readonly failed: readonly FailedCall[];
  /** Resolves when so many calls have been answered; throws what ended the load before. */
  reach(answered: number): Promise<void>;
  /** Lets what is in flight end, and resolves with the load. */
  stop(): Promise<Load>;
}

/** Keeps so many calls in flight until it is stopped. A call that failed is followed by the next one at once. */
export function startLoad(call: () => Promise<unknown>, inFlight: number): Load {
  const failed: FailedCall[] = [];
  const waiting: { answered: number; resolve: () => void }[] = [];
  let answered = 0;
  let isStopped = false;

  const keepCalling = async () => {
    while (!isStopped) {
      const startedAtMs = performance.now();
      try {
        await call();
        answered += 1;
        for (const wait of waiting) if (answered >= wait.answered) wait.resolve();
      } catch (error) {
        failed.push({ error, startedAtMs });
      }
    }
  };
  const running = Promise.all(Array.from({ length: inFlight }, keepCalling));

  const load: Load = {
    get answered() {
      return answered;
    },
    failed,
    reach: (wanted) =>
      new Promise((resolve) => {
        if (answered >= wanted) return resolve();
        waiting.push({ answered: wanted, resolve });
      }),
    async stop() {
      isStopped = true;
      await running;
      return load;
    },
  };
  return load;
}
