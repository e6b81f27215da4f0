import type { Duration } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { SessionService, WatchSessionResponseSchema } from "#gen/toolbus/session/v1/session_service_pb.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { callerOf } from "#runtime/rpc/identity.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Switching } from "../sessions/switch/switching.ts";
import { type WatchParts, watchSession } from "../sessions/switch/watch.ts";
import { isDerivedSession } from "./derived-ids.ts";

export interface SessionRoutes extends WatchParts {
  ownership: SessionOwners;
  catalogue: WatchParts["catalogue"] & Pick<Catalogue, "requireAgent">;
  switching: Pick<Switching, "switchAgent" | "close">;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeSessions(router: ConnectRouter, routes: SessionRoutes): void {
  const { sessions, ownership, switching, catalogue, stopping } = routes;
  router.service(SessionService, {
    async createSession({ agent, sessionId }, context) {
      const caller = callerOf(context);
      if (isDerivedSession(sessionId, caller)) await ownership.requireStanding(sessionId, caller);
      return { session: await sessions.open({ agent, sessionId, caller }) };
    },
    async getSession({ sessionId }, context) {
      await ownership.requireStanding(sessionId, callerOf(context));
      return { session: await sessions.get(sessionId) };
    },
    async listSessions(request, context) {
      return sessions.list({ ...request, caller: callerOf(context) }, context.signal);
    },
    async closeSession(request, context) {
      await ownership.requireStanding(request.sessionId, callerOf(context));
      return { session: await switching.close(withDrain(request)) };
    },
    async switchAgent(request, context) {
      const caller = callerOf(context);
      await ownership.requireStanding(request.sessionId, caller);
      await catalogue.requireAgent(request.agent, caller);
      return { session: await switching.switchAgent(withDrain(request), context.signal) };
    },
    async setLogLevel({ sessionId, level }, context) {
      await ownership.requireStanding(sessionId, callerOf(context));
      return { session: await sessions.setLogLevel(sessionId, level) };
    },
    async *watchSession({ sessionId }, context) {
      using ending = openEnding(context.signal, stopping);
      await ownership.requireStanding(sessionId, callerOf(context));
      try {
        for await (const session of watchSession(routes, sessionId, ending.signal))
          yield withEtag(WatchSessionResponseSchema, { session });
      } catch (error) {
        if (!ending.signal.aborted) throw error; // a watch that is left, or whose server stops, ends quietly
      }
    },
  });
}

function withDrain<R extends { drainTimeout?: Duration | undefined }>(request: R) {
  return { ...request, drainTimeoutMs: msFromDuration(request.drainTimeout) };
}
