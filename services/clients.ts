import { create, type DescService, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { publishWork } from "#runtime/bus/streams/publish-work.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { type BusClientOptions, clientOnBus } from "#runtime/rpc/bus/client.ts";
import { withoutPrincipal } from "#runtime/rpc/identity.ts";
import { isOfSuite, processOf } from "./processes.ts";

type Bus = Parameters<typeof clientOnBus>[0];

export interface ClientForOptions extends Partial<BusClientOptions> {}

/** A client of a service, on the bus, at the process that serves it unless another is named. */
export function clientFor<S extends DescService>(bus: Bus, service: S, options: ClientForOptions = {}): Client<S> {
  const process = options.process ?? processOf(service);
  return clientOnBus(bus, service, { ...options, process, sendsExpiry: !isOfSuite(process) });
}

/** Reads sessions from the router, on the service's own behalf; refuses an unknown one. */
export function sessionReader(bus: Bus, options: ClientForOptions): (sessionId: string) => Promise<Session> {
  const sessions = clientFor(bus, SessionService, options);
  return async (sessionId) => {
    const { session } = await askOnOwnBehalf(() => sessions.getSession({ sessionId }));
    return session ?? refuse("not_found", `no session ${sessionId}`, { reason: "SESSION_NOT_FOUND" });
  };
}

/**
 * Puts a wake-up of a session into the queue of those who run its agent. One that names no run says that news may stand in the inbox.
 * Acknowledged when it resolves.
 */
export async function wakeSession(
  bus: Parameters<typeof publishWork>[0],
  wake: MessageInitShape<typeof SessionWakeSchema> & { sessionId: string },
): Promise<void> {
  const payload = toBinary(SessionWakeSchema, create(SessionWakeSchema, wake));
  const subject = `toolbus.wake.${wake.sessionId}`;
  await publishWork(bus, { stream: "TOOLBUS_WAKES", subject, payload, what: `waking session ${wake.sessionId}` });
}

/** Has a service ask another one on its own behalf, whoever asked it; what the other refuses is a `Failure`. */
export async function askOnOwnBehalf<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await withoutPrincipal(ask);
  } catch (error) {
    throw failureFromConnectError(error);
  }
}
