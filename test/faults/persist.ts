import { Code, ConnectError } from "@connectrpc/connect";
import { createBackoff } from "#runtime/time/backoff.ts";
import { delay } from "#runtime/time/delay.ts";

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
export async function persist<T>(call: () => Promise<T>, givesUpAtMs: number): Promise<T> {
  const backoff = createBackoff({ initialMs: 50, maxMs: 500 });
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isPassing(error) || performance.now() > givesUpAtMs) throw error;
      await delay(backoff.next());
    }
  }
}
