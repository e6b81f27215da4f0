import { fieldsOf } from "#runtime/schema/json-object.ts";
import type { Backoff } from "#runtime/time/retry/backoff.ts";
import { isRetryable } from "./provider-errors.ts";

/** Whether to ask the model again after an error, and when. */
export type Retry = { kind: "give_up" } | { kind: "again"; afterMs: number };

export function decideRetry(error: unknown, backoff: Backoff, nowMs: number): Retry {
  if (!isRetryable(error)) return { kind: "give_up" };
  return { kind: "again", afterMs: retryAfterMs(error, nowMs) ?? backoff.next() };
}

/** What the provider asked for, in seconds or as a date (RFC 9110, 10.2.3), in milliseconds as some do, or in the body as Google. */
function retryAfterMs(error: unknown, nowMs: number): number | undefined {
  const headers = headersOf(error);
  const milliseconds = numberFrom(headers.get("retry-after-ms"));
  if (milliseconds !== undefined) return milliseconds;
  const after = headers.get("retry-after") ?? "";
  const seconds = numberFrom(after);
  if (seconds !== undefined) return seconds * 1_000;
  const dateMs = /[a-z]/i.test(after) ? Date.parse(after) : Number.NaN;
  if (!Number.isNaN(dateMs)) return Math.max(0, dateMs - nowMs);
  const delay = numberFrom(/"retryDelay":\s*"([\d.]+)s"/.exec(String(fieldsOf(error).responseBody))?.[1]);
  return delay === undefined ? undefined : delay * 1_000;
}

/** Digits only: a negative number is no wait, and no date either. */
function numberFrom(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d{1,15}(\.\d*)?\s*$/.test(text) ? Number(text) : undefined;
}

/** As the AI SDK's errors have them, or those of other packages; their names in lower case. */
function headersOf(error: unknown): ReadonlyMap<string, string> {
  const { responseHeaders, headers } = fieldsOf(error);
  const given = responseHeaders ?? headers;
  const entries = given instanceof Headers ? [...given.entries()] : Object.entries(fieldsOf(given));
  return new Map(entries.map(([name, value]) => [name.toLowerCase(), String(value)]));
}
