import { randomUUID } from "node:crypto";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { UsageFault } from "../faults/fault.ts";

const attempts = 3;

/** Starts what must not start twice: an answer that was lost is asked for again, under the same key, which is that of `--key` if given. */
export async function startOnce<T>(givenKey: string | undefined, send: (key: string) => Promise<T>): Promise<T> {
  if (givenKey === "") throw new UsageFault("--key needs a value");
  const key = givenKey ?? randomUUID();
  return retryWhile(isUnavailable, () => send(key), { initialMs: 100, maxMs: 400, attempts });
}
