import { refuse } from "./failure.ts";

/** Who asks: the principal that the gateway authenticated, or undefined for the suite's own services. */
export type Asker = string | undefined;

/** The principal that opened a session owns it, and its runs and calls, for ever; from outside they are for nobody else. */
export function requireOwner({ sessionId, principal }: { sessionId: string; principal: string }, asker: Asker): void {
  if (isOwner(principal, asker)) return;
  refuse("permission_denied", `session ${sessionId} belongs to another caller`, { reason: "PRINCIPAL_NOT_OWNER" });
}

/** The suite's own services have decided for themselves. */
export function isOwner(principal: string, asker: Asker): boolean {
  return asker === undefined || asker === principal;
}
