import type { Interceptor } from "@connectrpc/connect";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { createOwnership, type Ownership } from "#runtime/rpc/access/session-owners.ts";
import { withoutPrincipal } from "#runtime/rpc/identity.ts";
import { clientFor } from "../../clients.ts";

const timeoutMs = 10_000;

/** Asks the router whose a session is, on behalf of this service: nobody is told more than whether it is his. */
export function createSessionOwners(bus: Bus, interceptors: Interceptor[]): Ownership {
  const sessions = clientFor(bus, SessionService, { interceptors, defaultTimeoutMs: timeoutMs });
  return createOwnership(async (sessionId) => {
    try {
      return (await withoutPrincipal(() => sessions.getSession({ sessionId }))).session;
    } catch (error) {
      const failure = failureFromConnectError(error);
      if (failure.code === "not_found") return undefined;
      throw failure;
    }
  });
}
