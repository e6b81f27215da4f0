import { toJsonString } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import type { AuditEvent } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type AuditFilter, AuditFilterSchema, AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { RoundRobinQueue } from "#runtime/collections/turns/round-robin-queue.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { callerOf, isServiceItself, principalOf } from "#runtime/rpc/identity.ts";
import { sizeOfPage } from "#runtime/rpc/paging/page.ts";
import { placeFromToken, tokenFromPlace } from "#runtime/rpc/paging/page-token.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { type AuditReader, type MayRead, readPage, watchFrom } from "../catalogue/audit/audit-pages.ts";
import type { Sessions } from "../sessions/sessions.ts";

export interface AuditRoutes {
  audit: AuditReader;
  ownership: SessionOwners;
  sessions: Pick<Sessions, "ownedBy">;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeAudit(router: ConnectRouter, { audit, ownership, sessions, stopping }: AuditRoutes): void {
  /** SEC-5: each reads through the trail, and a principal has one of them read at a time. */
  const pages = new RoundRobinQueue(Number.POSITIVE_INFINITY);

  /** session-owner-4; refuses a session of somebody else that is asked for by name. */
  async function rightOf(context: HandlerContext, filter: AuditFilter | undefined): Promise<MayRead | undefined> {
    const caller = callerOf(context);
    if (caller.isOperator || isServiceItself(caller)) return undefined;
    await ownership.requireSession(filter?.sessionId ?? "", caller);
    return ({ sessionId }) => ownership.isOwnSession(sessionId, caller);
  }

  router.service(AuditService, {
    async *watchAuditEvents({ filter, fromSequence }, context) {
      const mayRead = await rightOf(context, filter);
      using ending = openEnding(context.signal, stopping);
      const watched = watchFrom(audit, { filter, fromSequence, mayRead }, ending.signal);
      for await (const update of watched) yield { update };
      stopping.throwIfAborted();
    },
    async listAuditEvents({ filter, pageSize, pageToken }, context) {
      const list = [
        "audit events",
        callerOf(context).principal ?? "",
        filter ? toJsonString(AuditFilterSchema, filter) : "",
      ];
      const beforeSequence = Number(placeFromToken(list, pageToken) || 0);
      const isOwn = (await rightOf(context, filter)) && (await sessions.ownedBy(callerOf(context), context.signal));
      const mayRead = isOwn && (({ sessionId }: AuditEvent) => isOwn(sessionId));
      const request = { filter, pageSize: sizeOfPage(pageSize), beforeSequence, mayRead };
      const read = () => readPage(audit, request, context.signal);
      const { events, nextBefore } = await pages.run(principalOf(callerOf(context)), read, context.signal);
      return { events, nextPageToken: tokenFromPlace(list, nextBefore === 0 ? "" : String(nextBefore)) };
    },
  });
}
