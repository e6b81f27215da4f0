import type { Grants } from "#gen/toolbus/access/v1/access_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { type Caller, isServiceItself, LOCAL_PRINCIPAL, principalOf } from "#runtime/rpc/identity.ts";

/** Without keys everybody is one principal, which no list of names can tell apart. */
export function isGranted(grants: Grants | undefined, principal: string): boolean {
  if (grants === undefined || principal === LOCAL_PRINCIPAL) return true;
  return grants.principals.includes(principal) || grants.principals.includes("*");
}

/** SEC-2: refuses a principal that is not named. `what` is the agent or the tool, in words. */
export function requireGrant(what: string, grants: Grants | undefined, caller: Caller): void {
  if (isServiceItself(caller) || isGranted(grants, principalOf(caller))) return;
  const advice = `ask an operator to name ${JSON.stringify(principalOf(caller))} in its grants`;
  refuse("permission_denied", `${what} is granted to others: ${advice}`, { reason: "PRINCIPAL_NOT_GRANTED" });
}
