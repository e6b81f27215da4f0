import { type Caller, isServiceItself } from "../rpc/identity.ts";
import { refuse } from "./failure.ts";

/**
 * The principal that opened a session owns it, and its runs and calls, for ever; from outside they are for nobody else. `asked` is what
 * the caller named: it learns no other id from the refusal.
 */
export function requireOwner({ principal }: { readonly principal: string }, caller: Caller, asked: string): void {
  if (isOwner(principal, caller)) return;
  refuse("permission_denied", `${asked} belongs to another caller`, { reason: "PRINCIPAL_NOT_OWNER" });
}

/** A service that asks by itself has decided what it may. */
export function isOwner(principal: string, caller: Caller): boolean {
  return isServiceItself(caller) || caller.principal === principal;
}

export function refuseMissingSession(id: string): never {
  return refuse("not_found", `there is no session ${id}`, {
    reason: "SESSION_NOT_FOUND",
    metadata: { session_id: id },
  });
}
