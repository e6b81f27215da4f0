import { checkDelivery, checkExecution } from "./check-delivery.ts";
import { checkAnswer, checkInbox, checkInTime, checkRecord, checkWinner } from "./check-result.ts";
import type { CallHistory, RouterHistory, Violation } from "./history.ts";
import type { Rule } from "./rule.ts";

const rules: Readonly<Record<string, Rule>> = {
  "answered, or an error that says why": checkAnswer,
  "recorded as it was told": checkRecord,
  "one submitter won": checkWinner,
  "answered in time": checkInTime,
  "in the inbox once": checkInbox,
  "handed to one at a time": checkDelivery,
  "executed by one": checkExecution,
};

/** All promises about recorded calls that a history breaks (TOOL-5 to TOOL-9, LOOP-14): none, if all is well. */
export function checkRouterHistory(history: RouterHistory): Violation[] {
  const { calls } = history;
  return Object.entries(rules).flatMap(([rule, check]) =>
    calls.flatMap((call) => [...check(call, history)].map((what) => ({ rule, callId: call.callId, what }))),
  );
}

/** Whether its result reached who called, in line or by the inbox. */
export function hasResult({ record, answer, inbox }: CallHistory): boolean {
  if (record?.state !== "resolved" || record.isError) return false;
  return answer?.outputJson === record.outputJson || inbox.includes(record.outputJson);
}
