import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { type BusClientOptions, clientOnBus } from "#runtime/rpc/bus/client.ts";
import { withoutPrincipal } from "#runtime/rpc/identity.ts";
import { isOfSuite, processOf } from "./processes.ts";

export interface ClientForOptions extends Partial<BusClientOptions> {}

/** A client of a service, on the bus, at the process that serves it unless another is named. */
export function clientFor<S extends DescService>(
  bus: Parameters<typeof clientOnBus>[0],
  service: S,
  options: ClientForOptions = {},
): Client<S> {
  const process = options.process ?? processOf(service);
  return clientOnBus(bus, service, { ...options, process, sendsExpiry: !isOfSuite(process) });
}

/** Has a service ask another one on its own behalf, whoever asked it; what the other refuses is a `Failure`. */
export async function askOnOwnBehalf<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await withoutPrincipal(ask);
  } catch (error) {
    throw failureFromConnectError(error);
  }
}
