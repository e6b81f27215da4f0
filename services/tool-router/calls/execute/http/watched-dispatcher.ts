import type { Dispatcher } from "undici";

/** The same dispatcher, which tells of each request just before its first byte is written to a connection. */
export function tellingStart(dispatcher: Dispatcher, onStart: () => void): Dispatcher {
  return dispatcher.compose((dispatch) => (options, handler) => dispatch(options, startObserved(handler, onStart)));
}

function startObserved(handler: Dispatcher.DispatchHandler, onStart: () => void): Dispatcher.DispatchHandler {
  return new Proxy(handler, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key);
      if (typeof member !== "function") return member;
      return (...args: unknown[]): unknown => {
        if (key === "onRequestStart") onStart();
        return Reflect.apply(member, target, args);
      };
    },
  });
}
