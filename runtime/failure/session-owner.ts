import { type Caller, isServiceItself } from "../rpc/identity.ts";
import { refuse } from "./failure.ts";

/** The principal that opened a session owns it, and its runs and calls, for ever; from outside they are for nobody else. */
export function requireOwner({ sessionId, principal }: { sessionId: string; principal: string }, caller: Caller): void {
  if (isOwner(principal, caller)) return;
  refuse("permission_denied", `session ${sessionId} belongs to another caller`, { reason: "PRINCIPAL_NOT_OWNER" });
}

/** A service that asks by itself has decided what it may. */
export function isOwner(principal: string, caller: Caller): boolean {
  return isServiceItself(caller) || caller.principal === principal;
}
