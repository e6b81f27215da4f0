import { isForPeople } from "#runtime/content/questions.ts";
import { isOwner, requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { IsForPrincipal } from "../../sessions/spaces.ts";
import { requireAnswerable, requireShown } from "../records/owners.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { refuseCall, refuseUnlessOpen } from "./open.ts";

export type Answerers = ReturnType<typeof createAnswerers>;

/** Who answers calls that wait for people: their owner, and those for whom the space is that shows them. */
export function createAnswerers({ spaces, clock }: { spaces: { isFor: IsForPrincipal }; clock: Clock }) {
  async function mayAnswer({ principal, spaceId }: CallRecord, caller: Caller): Promise<boolean> {
    if (isOwner(principal, caller)) return true;
    return spaceId !== "" && caller.principal !== undefined && (await spaces.isFor(spaceId, caller.principal));
  }

  /** Refuses whoever may not answer the call, and every call that waits for no person. */
  async function require(record: CallRecord, caller: Caller): Promise<void> {
    const { callId } = record;
    if (!isForPeople(record) || !(await mayAnswer(record, caller))) requireOwner(record, caller, `call ${callId}`);
    if (isForPeople(record)) return;
    const why = "does not wait for a person: whoever answers it has a key";
    refuseCall("failed_precondition", callId, { reason: "CALL_NOT_AWAITED", why });
  }

  return {
    require,
    /** session-owner-2; call-key-3 and call-key-4 of `#runtime/rpc/access/tokens/call-keys.ts` for who comes by a key of the call. */
    async requireReader(record: CallRecord, caller: Caller): Promise<void> {
      if (caller.callKey === undefined) return requireShown(record, caller);
      await require(record, caller);
      refuseUnlessOpen(record, clock.now());
    },
    /** session-owner-3; call-key-3 likewise. Whether the call is open, the submission finds out. */
    async requireSubmitter(record: CallRecord, caller: Caller): Promise<void> {
      if (caller.callKey === undefined) requireAnswerable(record, caller);
      else await require(record, caller);
    },
  };
}
