import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor, Transport } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/nats-core";
import { getOrInsertComputed } from "../../../collections/get-or-insert-computed.ts";
import { DEFAULT_TIMINGS, type Timings } from "../call/timings.ts";
import { CallMux } from "../channel/mux.ts";
import { cancelSubjectOf, subjectOfMethod, urlOfMethod } from "../channel/subjects.ts";
import type { ClientContext, MethodRoute } from "./client-call.ts";
import { runUnary } from "./run-unary.ts";
import { runStream } from "./streams/run-stream.ts";

export interface NatsTransportOptions {
  /** The service on the bus, which is also its queue group. */
  readonly service: string;
  readonly interceptors?: Interceptor[];
  readonly defaultTimeoutMs?: number;
  readonly timings?: Timings;
  /** Whether the server may be one of release 1.0, which wants an expiry; true unless told. */
  readonly sendsExpiry?: boolean;
}

/**
 * A Connect transport over NATS, as `docs/connect-over-nats/README.md` describes it. It lives as long as the connection of the bus and
 * needs no closing. `deliveryOf` tells of a call that failed without an answer whether it may have been started.
 */
export function createNatsTransport(bus: { connection: NatsConnection }, options: NatsTransportOptions): Transport {
  const { service, interceptors = [], timings = DEFAULT_TIMINGS } = options;
  const context: ClientContext = {
    mux: CallMux.of(bus.connection),
    cancelSubject: cancelSubjectOf(service),
    silence: service.includes(".") ? undefined : CallMux.of(bus.connection).silenceOf(service),
    timings,
    sendsExpiry: options.sendsExpiry ?? true,
  };
  const routes = new Map<DescMethod, MethodRoute>();

  const routeTo = (method: DescMethod): MethodRoute => ({
    subject: subjectOfMethod(service, method),
    url: urlOfMethod(service, method),
    isRead: isRead(method),
  });
  const routeOf = (method: DescMethod) => getOrInsertComputed(routes, method, routeTo);

  const limitOf = (timeoutMs: number | undefined): number | undefined => {
    if (timeoutMs === undefined) return options.defaultTimeoutMs;
    return timeoutMs <= 0 ? undefined : timeoutMs;
  };

  return {
    unary(method, signal, timeoutMs, header, message, contextValues) {
      const call = { route: routeOf(method), timeoutMs: limitOf(timeoutMs), interceptors };
      return runUnary(context, { method, signal, header, message, contextValues, ...call });
    },
    stream(method, signal, timeoutMs, header, messages, contextValues) {
      const call = { route: routeOf(method), timeoutMs: limitOf(timeoutMs), interceptors };
      return runStream(context, { method, signal, header, messages, contextValues, ...call });
    },
  };
}

/** By the contract's naming: methods that get, list and watch change nothing. */
function isRead({ name }: DescMethod): boolean {
  return /^(Get|List|Watch)/.test(name);
}
