/**
 * More attempts than one claim may need at a turn: `model_retries` is at most 100, there are two models, and an answer may be
 * asked for twice. Those of the next claim are numbered after them.
 */
export const ATTEMPTS_OF_CLAIM = 1_024;

/** `attempt 2`, or `attempt 2 after 1 takeover` of a process that took the run over in the middle of the turn. */
export function attemptText(attempt: number): string {
  const takeovers = Math.max(0, Math.floor((attempt - 1) / ATTEMPTS_OF_CLAIM));
  const own = `attempt ${attempt - takeovers * ATTEMPTS_OF_CLAIM}`;
  return takeovers === 0 ? own : `${own} after ${takeovers} takeover${takeovers === 1 ? "" : "s"}`;
}
