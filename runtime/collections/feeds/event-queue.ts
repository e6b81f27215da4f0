/** Events on their way to one reader who may be slower than their source: bounded, the oldest give way. */
export interface EventQueue<T> extends AsyncIterable<T> {
  push(event: T): void;
  /** Takes back what was not read yet; false if there was none. */
  remove(isRemoved: (event: T) => boolean): boolean;
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
    remove(isRemoved) {
      const before = events.length;
      events = events.filter((event) => !isRemoved(event));
      return events.length < before;
    },
    end(error) {
      ending ??= error === undefined ? {} : { error };
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const count = leftOut;
        leftOut = 0;
        if (count > 0 && options.leftOut) yield options.leftOut(count);
        while (leftOut === 0 && events.length > 0) yield events.shift()!;
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
