import { type Asker, isOwner, requireOwner } from "#runtime/failure/session-owner.ts";
import type { CallRecord } from "./call-record.ts";
import { isExternal } from "./states.ts";

/* O2 and O3 of sessions/ownership.ts. */

/** O2 */
export function isShownTo({ principal, taken, watcherPrincipal }: CallRecord, asker: Asker): boolean {
  return isOwner(principal, asker) || (taken && watcherPrincipal === asker);
}

/** O2 */
export function requireShown(record: CallRecord, asker: Asker): void {
  if (!isShownTo(record, asker)) requireOwner(record, asker);
}

/** O3 */
export function requireAnswerable(record: CallRecord, asker: Asker): void {
  if (!isExternal(record)) requireOwner(record, asker);
}
