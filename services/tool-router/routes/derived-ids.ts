import { refuseField } from "#runtime/failure/failure.ts";
import type { Caller } from "#runtime/rpc/identity.ts";

/*
 * The suite's services derive some ids from what others may know: a run's id and its model's call, a principal's key, a call. Nobody
 * from outside chooses such an id, so that nobody has it before them.
 */

const CALL_OF_RUN = /^run_[0-9a-z]{21}_/;
const SESSION_OF_KEY_OR_CALL = /^(key|sub)_[0-9a-f]{40}$/;

export function refuseDerivedCall(callId: string, { service }: Caller): void {
  if (service === undefined && CALL_OF_RUN.test(callId)) refuseField("call_id", "is an id of a call of a run");
}

/** Whether the caller may not open a session under the id, but only name it once it is there. */
export function isDerivedSession(sessionId: string, { service }: Caller): boolean {
  return service === undefined && SESSION_OF_KEY_OR_CALL.test(sessionId);
}
