import type { Interceptor } from "@connectrpc/connect";
import type { Logger } from "pino";
import { createFailureInterceptor } from "../failure/connect.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createClientTracing, createServerTracing } from "../telemetry/tracing.ts";
import { createCallerReceiver } from "./access/callers.ts";
import { createAccess } from "./access/rules.ts";
import type { Verify } from "./access/tokens/verifier.ts";

export interface ServerInterceptorsOptions {
  logger: Pick<Logger, "error">;
  /** Without it traces are passed on, and nothing is recorded. */
  telemetry?: Pick<Telemetry, "serverTracing" | "rpcMetrics">;
  /** For the doors, where requests of strangers arrive; it is too slow for every hop. */
  validation?: Interceptor;
  /** Proves who calls; without it nobody does, who reaches what is public. */
  verify?: Verify | undefined;
  /** Whether somebody else finds out who calls, and what it may: the server's admission, or nats-server for a third party. */
  fromOutside?: boolean;
}

/**
 * What every server does around its handlers, from the outside in: the trace, so that logs of what follows carry its id; the
 * metrics, which see the codes that the caller sees; failures; who calls; access; validation. What these refuse is a failure.
 */
export function serverInterceptors(options: ServerInterceptorsOptions): Interceptor[] {
  const { logger, telemetry, validation, verify, fromOutside = false } = options;
  return [
    telemetry?.serverTracing ?? createServerTracing(undefined),
    ...(telemetry?.rpcMetrics ? [telemetry.rpcMetrics] : []),
    createFailureInterceptor(logger),
    ...(verify ? [createCallerReceiver(verify)] : []),
    ...(fromOutside ? [] : [createAccess()]),
    ...(validation ? [validation] : []),
  ];
}

export interface ClientInterceptorsOptions {
  telemetry?: Pick<Telemetry, "clientTracing"> | undefined;
}

/** What every client does around its calls: names the place in the trace. Deadlines are Connect's own; for who asks see `transportOnBus`. */
export function clientInterceptors({ telemetry }: ClientInterceptorsOptions = {}): Interceptor[] {
  return [telemetry?.clientTracing ?? createClientTracing(undefined)];
}
