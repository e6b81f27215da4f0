import type { ConnectRouter } from "@connectrpc/connect";
import { SessionService } from "#gen/toolbus/router/v1/sessions_pb.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import { openEnding } from "../ending.ts";
import type { Switching } from "../switching/switching.ts";
import { type WatchParts, watchSession } from "../switching/watch.ts";

export interface SessionRoutes extends WatchParts {
  switching: Pick<Switching, "switchAgent" | "close">;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeSessions(router: ConnectRouter, routes: SessionRoutes): void {
  const { sessions, switching, stopping } = routes;
  router.service(SessionService, {
    async createSession({ agent, sessionId }, { requestHeader }) {
      return { session: await sessions.open({ agent, sessionId, principal: principalOf(requestHeader) }) };
    },
    async getSession({ sessionId }) {
      return { session: await sessions.get(sessionId) };
    },
    listSessions: ({ pageSize, pageToken }, { signal }) => sessions.list(pageSize, pageToken, signal),
    async closeSession(request) {
      return { session: await switching.close(request) };
    },
    async switchAgent(request) {
      return { session: await switching.switchAgent(request) };
    },
    async *watchSession({ sessionId }, { signal }) {
      using ending = openEnding(signal, stopping);
      try {
        for await (const session of watchSession(routes, sessionId, ending.signal)) yield { session };
      } catch (error) {
        if (!ending.signal.aborted) throw error; // a watch that is left, or whose server stops, ends quietly
      }
    },
  });
}
