import type { ConnectRouter } from "@connectrpc/connect";
import { AuditService } from "#gen/toolbus/router/v1/audit_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { type AuditReader, readPage, watchFrom } from "../audit-pages.ts";

export interface AuditRoutes {
  audit: AuditReader;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeAudit(router: ConnectRouter, { audit, stopping }: AuditRoutes): void {
  router.service(AuditService, {
    async *watchAudit({ filter, fromSequence }, { signal }) {
      using ending = openEnding(signal, stopping);
      const watched = watchFrom(audit, { filter, fromSequence: Number(fromSequence) }, ending.signal);
      for await (const event of watched) yield { event };
    },
    listAuditEvents: ({ filter, pageSize, pageToken }, { signal }) =>
      readPage(audit, { filter, pageSize: pageSize || 100, beforeSequence: sequenceFromToken(pageToken) }, signal),
  });
}

function sequenceFromToken(token: string): number {
  if (/^\d{0,15}$/.test(token)) return Number(token);
  return refuse("invalid_argument", "page_token is none of those that were given out", {
    reason: "PAGE_TOKEN_INVALID",
  });
}
