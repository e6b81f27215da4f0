import { randomUUID } from "node:crypto";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { UsageFault } from "../faults/fault.ts";

const attempts = 3;

/** What a person says to an agent, as the input of a run. */
export function inputOf(text: string) {
  return [{ item: { case: "message" as const, value: { role: Role.USER, content: textContent(text) } } }];
}

/** Starts what must not start twice: an answer that was lost is asked for again, under the same key, which is that of `--key` if given. */
export async function startOnce<T>(givenKey: string | undefined, send: (key: string) => Promise<T>): Promise<T> {
  if (givenKey === "") throw new UsageFault("--key needs a value");
  const key = givenKey ?? randomUUID();
  return retryWhile(isUnavailable, () => send(key), { initialMs: 100, maxMs: 400, attempts });
}
