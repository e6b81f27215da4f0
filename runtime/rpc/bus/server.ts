import type { Bus } from "../../bus/bus.ts";
import { createVerifier } from "../access/tokens/verifier.ts";
import { type ServerInterceptorsOptions, serverInterceptors } from "../interceptors.ts";
import { type NatsServerOptions, serveOnNats } from "../nats/server/server.ts";

export type BusServerOptions = Omit<NatsServerOptions, "interceptors" | "logger"> &
  Pick<ServerInterceptorsOptions, "logger" | "telemetry" | "validation">;

/** Serves routes on the bus to those whom they are for: who asks is proven by a token for this service. */
export function serveOnBus(
  bus: Pick<Bus, "connection" | "trust">,
  options: BusServerOptions,
): Promise<AsyncDisposable> {
  const verify = createVerifier({ audience: options.service, trust: bus.trust });
  return serveOnNats(bus, { ...options, interceptors: serverInterceptors({ ...options, verify }) });
}
