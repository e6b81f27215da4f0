import { Iterated } from "../collections/feeds/iterated.ts";

export interface MessageObserver {
  /** Runs each step of the stream; for a context that must hold in it. */
  step?: <R>(work: () => R) => R;
  /** Called once: when the stream ended, failed, or its reader left. */
  end?: (error?: unknown) => void;
}

const direct = <R>(work: () => R): R => work();

/** The same messages at the same pace, with somebody looking on. */
export function observedMessages<T>(messages: AsyncIterable<T>, observer: MessageObserver): AsyncIterable<T> {
  const { step = direct } = observer;
  let hasEnded = false;
  function end(error?: unknown): void {
    if (hasEnded) return;
    hasEnded = true;
    observer.end?.(error);
  }

  async function watched(work: () => Promise<IteratorResult<T>>, isLast: boolean): Promise<IteratorResult<T>> {
    try {
      const result = await step(work);
      if (result.done || isLast) end();
      return result;
    } catch (error) {
      end(error);
      throw error;
    }
  }

  return new Iterated<T>(() => {
    const iterator = step(() => messages[Symbol.asyncIterator]());
    return {
      next: () => watched(() => iterator.next(), false),
      return: (value) => watched(async () => (iterator.return ? iterator.return(value) : { done: true, value }), true),
      throw: (error) =>
        watched(() => {
          end(error);
          return iterator.throw ? iterator.throw(error) : Promise.reject(error);
        }, true),
    };
  });
}
