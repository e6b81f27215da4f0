import type { ConnectRouter } from "@connectrpc/connect";
import { type AuditRoutes, routeAudit } from "./routes/audit.ts";
import { type CallRoutes, routeCalls } from "./routes/calls.ts";
import { type CatalogueRoutes, routeCatalogue } from "./routes/catalogue.ts";
import { type RecordRoutes, routeRecords } from "./routes/records.ts";
import { routeSessions, type SessionRoutes } from "./routes/sessions.ts";

export type Routes = CatalogueRoutes & CallRoutes & SessionRoutes & RecordRoutes & AuditRoutes;

export function createRoutes(routes: Routes): (router: ConnectRouter) => void {
  return (router) => {
    routeCatalogue(router, routes);
    routeCalls(router, routes);
    routeSessions(router, routes);
    routeRecords(router, routes);
    routeAudit(router, routes);
  };
}
