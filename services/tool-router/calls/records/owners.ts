import { isOwner, requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { CallRecord } from "./record/call-record.ts";
import { isExternal } from "./record/states.ts";

/* O2 and O3 of #runtime/rpc/access/session-owners.ts. */

/** O2 */
export function isShownTo({ principal, taken, watcherPrincipal }: CallRecord, caller: Caller): boolean {
  return isOwner(principal, caller) || (taken && watcherPrincipal === caller.principal);
}

/** O2 */
export function requireShown(record: CallRecord, caller: Caller): void {
  if (!isShownTo(record, caller)) requireOwner(record, caller, `call ${record.callId}`);
}

/** O3 */
export function requireAnswerable(record: CallRecord, caller: Caller): void {
  if (!isExternal(record)) requireOwner(record, caller, `call ${record.callId}`);
}
