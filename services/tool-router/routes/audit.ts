import type { ConnectRouter } from "@connectrpc/connect";
import { AuditService } from "#gen/toolbus/router/v1/audit_pb.ts";
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
      readPage(audit, { filter, pageSize: pageSize || 100, beforeSequence: Number(pageToken || 0) }, signal),
  });
}
