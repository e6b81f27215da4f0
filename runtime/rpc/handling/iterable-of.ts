/** One message as a stream. By hand, since each generator of the language that a call goes through costs it about a microsecond. */
export function iterableOf<T>(item: T): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
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
    },
  };
}
