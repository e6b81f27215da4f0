import { startTimer } from "#runtime/time/timer.ts";

/** Where several principals ask, so many requests of each are worked at together. */
const LIMIT = 4;
/** A request that is not answered by then waits for something else, and gives its place back. */
const PLACE_MS = 10;
/**
 * Where this process is too busy to look in time, the request may wait for it alone: it is looked at again, so often at most. One that
 * waits for a tool keeps its place no longer than that, however busy this process is.
 */
const MOST_LATE_LOOKS = 2;
/** Who has asked so lately is one of those who ask. */
const ACTIVE_MS = 1_000;

/** The requests of one principal. */
interface Flow {
  askedAt: number;
  running: number;
  readonly waiting: (() => void)[];
}

/**
 * SEC-5: where several principals ask, one that sends many requests at once waits for itself. One that asks alone never waits.
 * How it differs from other bounds: `runtime/collections/turns/round-robin-queue.ts`.
 */
export class ContentionLimiter {
  /** Who asked last stands last. */
  readonly #flows = new Map<string, Flow>();
  readonly #fewest: number;

  /** `fewest`: so many who ask are a reason to wait. */
  constructor(fewest = 2) {
    this.#fewest = fewest;
  }

  /** Resolves when it is the request's turn; what it gives is called when the request is answered. */
  async acquire(principal: string): Promise<() => void> {
    const flow = this.#asking(principal);
    if (flow.running >= this.#limit()) await new Promise<void>((resolve) => flow.waiting.push(resolve));
    else flow.running += 1;
    let isRunning = true;
    const release = () => {
      if (isRunning) this.#release(flow);
      isRunning = false;
      stop();
    };
    let stop = () => {};
    const wait = (lateLooks: number) => {
      const lookAt = performance.now() + PLACE_MS;
      const look = () => {
        const isLate = performance.now() - lookAt > PLACE_MS;
        if (isLate && lateLooks < MOST_LATE_LOOKS) wait(lateLooks + 1);
        else release();
      };
      stop = startTimer(PLACE_MS, look, { isBackground: true });
    };
    wait(0);
    return release;
  }

  /** A request that waits takes its place. */
  #release(flow: Flow): void {
    flow.running -= 1;
    while (flow.waiting.length > 0 && flow.running < this.#limit()) {
      flow.running += 1;
      flow.waiting.shift()?.();
    }
  }

  #asking(principal: string): Flow {
    const flow = this.#flows.get(principal) ?? { askedAt: 0, running: 0, waiting: [] };
    flow.askedAt = performance.now();
    this.#flows.delete(principal);
    this.#flows.set(principal, flow);
    return flow;
  }

  #limit(): number {
    const since = performance.now() - ACTIVE_MS;
    for (const [principal, { askedAt, running }] of this.#flows) {
      if (askedAt > since || running > 0) break;
      this.#flows.delete(principal);
    }
    return this.#flows.size < this.#fewest ? Number.POSITIVE_INFINITY : LIMIT;
  }
}
