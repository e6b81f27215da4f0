import { isOwner, requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { CallRecord } from "./record/call-record.ts";
import { isExternal } from "./record/states.ts";

/* session-owner-2 and session-owner-3 of #runtime/rpc/access/session-owners.ts. */

/** session-owner-2 */
export function isShownTo(
  { principal, taken, watcherPrincipal }: Pick<CallRecord, "principal" | "taken" | "watcherPrincipal">,
  caller: Caller,
): boolean {
  return isOwner(principal, caller) || (taken && watcherPrincipal === caller.principal);
}

/** session-owner-2 */
export function requireShown(record: CallRecord, caller: Caller): void {
  if (!isShownTo(record, caller)) requireOwner(record, caller, `call ${record.callId}`);
}

/** session-owner-3 */
export function requireAnswerable(record: CallRecord, caller: Caller): void {
  if (!isExternal(record)) requireOwner(record, caller, `call ${record.callId}`);
}
