import type { DescService } from "@bufbuild/protobuf";
import type { Client, Interceptor, Transport } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/nats-core";
import type { BusLogin } from "#runtime/bus/credentials/login.ts";
import { createCallerSender, type WhoAsks } from "../access/callers.ts";
import { issuerOf } from "../access/tokens/issuer.ts";
import { clientInterceptors } from "../interceptors.ts";
import { createNatsTransport, type NatsTransportOptions } from "../nats/client/transport.ts";
import { clientOver } from "./client-over.ts";

/** A connection, and who signs in by it: without that, its requests are nobody's. */
export interface SignedBus {
  readonly connection: NatsConnection;
  readonly login?: BusLogin;
}

export interface BusClientOptions extends Pick<NatsTransportOptions, "defaultTimeoutMs" | "sendsExpiry"> {
  /** The process that is called, by its name on the bus. */
  process: string;
  /** `clientInterceptors()` unless told, which pass on the trace and make no spans. */
  interceptors?: Interceptor[];
  caller?: WhoAsks;
}

/** To a process on the bus, with a token of who asks. */
export function transportOnBus({ connection, login }: SignedBus, options: BusClientOptions): Transport {
  const {
    process: service,
    interceptors = clientInterceptors(),
    defaultTimeoutMs,
    sendsExpiry = true,
    caller,
  } = options;
  const sender = login ? [createCallerSender({ issuer: issuerOf(login), audience: service, caller })] : [];
  const limits = defaultTimeoutMs === undefined ? {} : { defaultTimeoutMs };
  return createNatsTransport(
    { connection },
    { service, interceptors: [...interceptors, ...sender], sendsExpiry, ...limits },
  );
}

/** A client of a service on the bus. It holds nothing open, so it needs no closing. */
export function clientOnBus<S extends DescService>(bus: SignedBus, service: S, options: BusClientOptions): Client<S> {
  return clientOver(transportOnBus(bus, options), service);
}
