import { ProtocolError, ProtocolErrorCode, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { isObject, jsonFrom } from "#runtime/schema/json-object.ts";
import { LoginNeeded, refusalIn } from "../../servers/login-needed.ts";
import { STREAM_ENDED } from "../../transport/http/stream-ended.ts";

/**
 * What an error of a call means, and what follows:
 *
 * - `answered`  the server answered with an error: data for the model
 * - `lost`      the session is gone and nothing was started: connect again and call again, once
 * - `refused`   nothing was started: an error that says so
 * - `unreachable` likewise, and the connection is of no use any more
 * - `login`     likewise: the server asks for a token that there is not
 * - `unknown`   it may have been executed: an error that says so, and nobody repeats it
 */
export type Outcome = { kind: "answered" | "lost" | "refused" | "unreachable" | "login" | "unknown"; text: string };

/** The system's words for a connection that did not come about, or on which the request did not. */
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH", // of undici's own second try, after HTTP 421 with a body that was still coming
]);

/** RFC 9110 and 6585: no support for the method or for the version of HTTP, and a network in between that wants a login. */
const UNPROCESSED = new Set([501, 505, 511]);

const ANSWERED_WRONGLY = new Set<string>([SdkErrorCode.InvalidResult, SdkErrorCode.UnsupportedResultType]);
const NEEDS_INPUT = new Set<string>([SdkErrorCode.InputRequiredRoundsExceeded, SdkErrorCode.CapabilityNotSupported]);

export function outcomeOf(error: unknown, hasSession: boolean): Outcome {
  const text = messageFromUnknown(error);
  const refusal = refusalIn(error);
  if (refusal) return { kind: refusal instanceof LoginNeeded ? "login" : "refused", text: refusal.message };
  if (error instanceof SdkHttpError) return outcomeOfStatus(error, hasSession);
  if (error instanceof ProtocolError) {
    const { data } = error;
    const isStreamEnd = typeof data === "object" && data !== null && "reason" in data && data.reason === STREAM_ENDED;
    return { kind: isStreamEnd ? "unknown" : "answered", text };
  }
  if (error instanceof SdkError && ANSWERED_WRONGLY.has(error.code))
    return { kind: "answered", text: `the server's answer cannot be used: ${text}` };
  if (error instanceof SdkError && NEEDS_INPUT.has(error.code))
    return { kind: "answered", text: `the tool asks for what this client does not offer: ${text}` };
  if (error instanceof RangeError && text.includes("call stack"))
    return { kind: "answered", text: "the server's answer cannot be used: it is nested too deeply" };
  const code = networkCodeOf(error);
  return {
    kind: code !== undefined && NEVER_SENT.has(code) ? "unreachable" : "unknown",
    text: networkTextOf(error),
  };
}

/** What went wrong, with the system's word for it: "fetch failed" alone says little. */
export function networkTextOf(error: unknown): string {
  const text = messageFromUnknown(error);
  const code = networkCodeOf(error);
  return code === undefined ? text : `${text} (${code})`;
}

/** What went wrong, with the status of an answer of HTTP or the system's word for a connection that did not come about. */
export function textOfError(error: unknown): string {
  return error instanceof SdkHttpError ? textOfStatus(error) : networkTextOf(error);
}

function textOfStatus({ status, message }: SdkHttpError): string {
  return (message.includes(`HTTP ${status}`) ? message : `HTTP ${status}: ${message}`).slice(0, 500);
}

/** Some servers say 400 for a session that they do not know; those of 2026-07-28 say 404 for a method. */
function outcomeOfStatus(error: SdkHttpError, hasSession: boolean): Outcome {
  const { status, message } = error;
  const text = textOfStatus(error);
  if (status === 404 && isUnknownMethod(error.data.text)) return { kind: "answered", text };
  if (hasSession && (status === 404 || (status === 400 && /session/i.test(message)))) return { kind: "lost", text };
  return { kind: status < 500 || UNPROCESSED.has(status) ? "refused" : "unknown", text };
}

function isUnknownMethod(body: unknown): boolean {
  const answer = typeof body === "string" && jsonFrom(body);
  return isObject(answer) && isObject(answer.error) && answer.error.code === ProtocolErrorCode.MethodNotFound;
}

export function networkCodeOf(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && typeof cause.code === "string" && !(cause instanceof SdkError)) return cause.code;
  }
  return undefined;
}
