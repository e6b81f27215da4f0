import { APICallError } from "@ai-sdk/provider";
import { Failure } from "#runtime/failure/failure.ts";
import type { Backoff } from "#runtime/time/backoff.ts";
import { ModelInterrupted, ModelStalled } from "./attempt.ts";

/** Whether to ask the model again after an error, and when. */
export type Retry = { kind: "give_up" } | { kind: "again"; afterMs: number };

export function decideRetry(error: unknown, backoff: Backoff, nowMs: number): Retry {
  if (!isPassing(error)) return { kind: "give_up" };
  return { kind: "again", afterMs: retryAfterMs(error, nowMs) ?? backoff.next() };
}

function isPassing(error: unknown): boolean {
  if (APICallError.isInstance(error)) return error.isRetryable;
  if (error instanceof ModelStalled || error instanceof ModelInterrupted) return true;
  return !(error instanceof Failure); // a reset connection, an error inside of the stream, a part that cannot be parsed
}

/** What the provider asked for, in seconds or as a date (RFC 9110, 10.2.3), or in milliseconds as some do. */
function retryAfterMs(error: unknown, nowMs: number): number | undefined {
  if (!APICallError.isInstance(error)) return undefined;
  const { "retry-after-ms": milliseconds, "retry-after": after } = error.responseHeaders ?? {};
  if (milliseconds !== undefined && Number.isFinite(Number(milliseconds))) return Math.max(0, Number(milliseconds));
  if (after === undefined) return undefined;
  if (Number.isFinite(Number(after))) return Math.max(0, Number(after) * 1_000);
  const dateMs = Date.parse(after);
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}
