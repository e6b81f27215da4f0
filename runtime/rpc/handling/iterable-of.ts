import { Iterated } from "../../collections/feeds/iterated.ts";
import { connectError } from "../../failure/connect.ts";

/** One message as a stream. By hand, since each generator of the language that a call goes through costs it about a microsecond. */
export function iterableOf<T>(item: T): AsyncIterable<T> {
  return new Iterated<T>(() => {
    let isTaken = false;
    return {
      async next() {
        if (isTaken) return { done: true, value: undefined };
        isTaken = true;
        return { done: false, value: item };
      },
      // Connect's transports over HTTP end what they send by these.
      async return() {
        isTaken = true;
        return { done: true, value: undefined };
      },
      async throw(reason) {
        isTaken = true;
        throw reason;
      },
    };
  });
}

/** The same of each item of a stream, by hand for the same reason. */
export function mapped<T, U>(items: AsyncIterable<T>, map: (item: T) => U | Promise<U>): AsyncIterable<U> {
  return new Iterated<U>(() => {
    const iterator = items[Symbol.asyncIterator]();
    return {
      async next() {
        const result = await iterator.next();
        if (result.done) return result;
        const value = map(result.value);
        return { done: false, value: value instanceof Promise ? await value : value };
      },
      async return() {
        await iterator.return?.();
        return { done: true, value: undefined };
      },
    };
  });
}

/** The one request of a call that streams answers. */
export async function onlyOf<T>(messages: AsyncIterable<T>): Promise<T> {
  const iterator = messages[Symbol.asyncIterator]();
  const { done, value } = await iterator.next();
  if (done)
    throw connectError("invalid_argument", "a call that streams answers needs its one request", {
      reason: "INVALID_REQUEST",
    });
  iterator.return?.().catch(() => {}); // nothing more is asked of it, whatever it says
  return value;
}
