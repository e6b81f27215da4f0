import { startTimer } from "#runtime/time/timer.ts";

/** Where several principals ask, so many requests of each are worked at together. */
const SEATS = 4;
/** A request that is not answered by then waits for something else, and leaves its seat. */
const SEAT_MS = 10;
/** Where this process is too busy to look in time, the request may wait for it alone: it is looked at again, so often at most. */
const MOST_LATE_LOOKS = 8;
/** Who has asked so lately is one of those who ask. */
const ACTIVE_MS = 1_000;

/** The requests of one principal. */
interface Flow {
  askedAt: number;
  seated: number;
  readonly waiting: (() => void)[];
}

/** SEC-5: where several principals ask, one that sends many requests at once waits for itself. One that asks alone never waits. */
export class FairQueue {
  /** Who asked last stands last. */
  readonly #flows = new Map<string, Flow>();

  /** Resolves when it is the request's turn; what it gives is called when the request is answered. */
  async seat(principal: string): Promise<() => void> {
    const flow = this.#asking(principal);
    if (flow.seated >= this.#seats()) await new Promise<void>((resolve) => flow.waiting.push(resolve));
    else flow.seated += 1;
    let isSeated = true;
    const leave = () => {
      if (isSeated) this.#leave(flow);
      isSeated = false;
      stop();
    };
    let stop = () => {};
    const wait = (lateLooks: number) => {
      const lookAt = performance.now() + SEAT_MS;
      const look = () => {
        const isLate = performance.now() - lookAt > SEAT_MS;
        if (isLate && lateLooks < MOST_LATE_LOOKS) wait(lateLooks + 1);
        else leave();
      };
      stop = startTimer(SEAT_MS, look, { isBackground: true });
    };
    wait(0);
    return leave;
  }

  /** Its seat is taken by who waits, if one does. */
  #leave(flow: Flow): void {
    flow.seated -= 1;
    while (flow.waiting.length > 0 && flow.seated < this.#seats()) {
      flow.seated += 1;
      flow.waiting.shift()?.();
    }
  }

  #asking(principal: string): Flow {
    const flow = this.#flows.get(principal) ?? { askedAt: 0, seated: 0, waiting: [] };
    flow.askedAt = performance.now();
    this.#flows.delete(principal);
    this.#flows.set(principal, flow);
    return flow;
  }

  #seats(): number {
    const since = performance.now() - ACTIVE_MS;
    for (const [principal, { askedAt, seated }] of this.#flows) {
      if (askedAt > since || seated > 0) break;
      this.#flows.delete(principal);
    }
    return this.#flows.size < 2 ? Number.POSITIVE_INFINITY : SEATS;
  }
}
