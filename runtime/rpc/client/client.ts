import type { DescService } from "@bufbuild/protobuf";
import type { Client, Interceptor } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/nats-core";
import { clientInterceptors } from "../interceptors.ts";
import { createNatsTransport } from "../nats/client/transport.ts";
import { clientOver } from "./client-over.ts";

export interface BusClientOptions {
  /** The process that is called, by its name on the bus. */
  process: string;
  /** `clientInterceptors()` unless told, which pass on the trace and the principal and make no spans. */
  interceptors?: Interceptor[];
  defaultTimeoutMs?: number;
}

/** A client of a service on the bus. It holds nothing open, so it needs no closing. */
export function clientOnBus<S extends DescService>(
  bus: { connection: NatsConnection },
  service: S,
  options: BusClientOptions,
): Client<S> {
  const { process, interceptors = clientInterceptors(), defaultTimeoutMs } = options;
  const limits = defaultTimeoutMs === undefined ? {} : { defaultTimeoutMs };
  return clientOver(createNatsTransport(bus, { service: process, interceptors, ...limits }), service);
}
