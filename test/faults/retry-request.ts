import { Code, ConnectError } from "@connectrpc/connect";
import { retryWhile } from "#runtime/time/retry/retry.ts";

const passing: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Aborted,
  Code.Canceled,
  Code.ResourceExhausted,
]);

export function isPassing(error: unknown): boolean {
  return passing.has(ConnectError.from(error).code);
}

/** Repeats a client's request while nobody says yes or no, as a client does that wants to know. */
export function retryRequest<T>(call: () => Promise<T>, givesUpAtMs: number): Promise<T> {
  const patienceMs = givesUpAtMs - performance.now();
  return retryWhile(isPassing, call, { initialMs: 50, maxMs: 500, patienceMs });
}
