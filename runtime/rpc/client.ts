import type { DescService } from "@bufbuild/protobuf";
import type { Client, Interceptor } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/nats-core";
import { clientOver } from "./client-over.ts";
import { clientInterceptors } from "./interceptors.ts";
import { createNatsTransport } from "./nats/transport.ts";
import { roomOf } from "./rooms.ts";

export interface ClientForOptions {
  /** The service on the bus; the proto service's own unless told. */
  room?: string;
  /** `clientInterceptors()` unless told, which pass on the trace and the principal and make no spans. */
  interceptors?: Interceptor[];
  defaultTimeoutMs?: number;
}

/** A client of a service on the bus. It holds nothing open, so it needs no closing. */
export function clientFor<S extends DescService>(
  bus: { connection: NatsConnection },
  service: S,
  options: ClientForOptions = {},
): Client<S> {
  const { room = roomOf(service.typeName), interceptors = clientInterceptors(), defaultTimeoutMs } = options;
  const limits = defaultTimeoutMs === undefined ? {} : { defaultTimeoutMs };
  return clientOver(createNatsTransport(bus, { service: room, interceptors, ...limits }), service);
}
