/** Events on their way to one reader who may be slower than their source: bounded, the oldest give way. */
export interface EventQueue<T> extends AsyncIterable<T> {
  push(event: T): void;
  /** What is in the queue is still read; then the reading ends, or throws the error. */
  end(error?: unknown): void;
}

export interface EventQueueOptions<T> {
  limit: number;
  /** Makes the event that stands for those that were left out. */
  leftOut?: (count: number) => T;
}

export function createEventQueue<T>(options: EventQueueOptions<T>): EventQueue<T> {
  let events: T[] = [];
  let leftOut = 0;
  let ending: { error?: unknown } | undefined;
  let wake = () => {};

  function take(): T[] {
    const taken = leftOut > 0 && options.leftOut ? [options.leftOut(leftOut), ...events] : events;
    events = [];
    leftOut = 0;
    return taken;
  }

  return {
    push(event) {
      if (ending) return;
      events.push(event);
      if (events.length > options.limit) {
        events.shift();
        leftOut += 1;
      }
      wake();
    },
    end(error) {
      ending ??= error === undefined ? {} : { error };
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        yield* take();
        if (events.length > 0) continue;
        if (ending) {
          if ("error" in ending) throw ending.error;
          return;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
