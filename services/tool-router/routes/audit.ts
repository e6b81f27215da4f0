import type { ConnectRouter } from "@connectrpc/connect";
import type { AuditEvent } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type AuditFilter, AuditService } from "#gen/toolbus/router/v1/audit_pb.ts";
import { openEnding } from "../ending.ts";

/** The audit trail, read. */
export interface AuditReader {
  follow(fromSequence: number, signal: AbortSignal): AsyncIterable<AuditEvent>;
  backwards(beforeSequence: number, signal: AbortSignal): AsyncIterable<AuditEvent>;
}

export interface AuditRoutes {
  audit: AuditReader;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeAudit(router: ConnectRouter, { audit, stopping }: AuditRoutes): void {
  router.service(AuditService, {
    async *watchAudit({ filter, fromSequence }, { signal }) {
      using ending = openEnding(signal, stopping);
      for await (const event of audit.follow(Number(fromSequence), ending.signal)) {
        if (fits(event, filter)) yield { event };
      }
    },
    async listAuditEvents({ filter, pageSize, pageToken }, { signal }) {
      const events: AuditEvent[] = [];
      for await (const event of audit.backwards(Number(pageToken || 0), signal)) {
        if (!fits(event, filter)) continue;
        if (events.length === (pageSize || 100)) return { events, nextPageToken: String(events.at(-1)!.sequence) };
        events.push(event);
      }
      return { events, nextPageToken: "" };
    },
  });
}

function fits(event: AuditEvent, filter: AuditFilter | undefined): boolean {
  if (filter === undefined) return true;
  const { kinds, agent, sessionId, tool, service } = filter;
  return (
    (kinds.length === 0 || kinds.includes(event.kind)) &&
    (agent === "" || agent === event.agent) &&
    (sessionId === "" || sessionId === event.sessionId) &&
    (tool === "" || tool === event.tool) &&
    (service === "" || service === event.service)
  );
}
