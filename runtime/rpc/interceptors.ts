import type { Interceptor } from "@connectrpc/connect";
import type { Logger } from "pino";
import { createFailureInterceptor } from "../failure/connect.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createClientTracing, createServerTracing } from "../telemetry/tracing.ts";
import { createAccess } from "./access/rules.ts";
import { createCallerSender, createPrincipalReceiver, type SenderOptions } from "./identity.ts";

export interface ServerInterceptorsOptions {
  logger: Pick<Logger, "error">;
  /** Without it traces are passed on, and nothing is recorded. */
  telemetry?: Pick<Telemetry, "serverTracing" | "rpcMetrics">;
  /** For the doors, where requests of strangers arrive; it is too slow for every hop. */
  validation?: Interceptor;
  /** Whether what the headers say of the caller is anybody's word: the server's admission finds out who it is, and what it may. */
  fromOutside?: boolean;
}

/**
 * What every server does around its handlers, from the outside in: the trace, so that logs of what follows carry its id; the
 * metrics, which see the codes that the caller sees; failures; the principal; access; validation. What these two refuse is a failure.
 */
export function serverInterceptors(options: ServerInterceptorsOptions): Interceptor[] {
  const { logger, telemetry, validation, fromOutside = false } = options;
  return [
    telemetry?.serverTracing ?? createServerTracing(undefined),
    ...(telemetry?.rpcMetrics ? [telemetry.rpcMetrics] : []),
    createFailureInterceptor(logger),
    ...(fromOutside ? [] : [createPrincipalReceiver(), createAccess()]),
    ...(validation ? [validation] : []),
  ];
}

export interface ClientInterceptorsOptions extends SenderOptions {
  telemetry?: Pick<Telemetry, "clientTracing">;
}

/** What every client does around its calls: names the place in the trace, the principal and the service. Deadlines are Connect's own. */
export function clientInterceptors(options: ClientInterceptorsOptions = {}): Interceptor[] {
  return [options.telemetry?.clientTracing ?? createClientTracing(undefined), createCallerSender(options)];
}
