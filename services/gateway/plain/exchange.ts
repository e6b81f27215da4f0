import { isUtf8 } from "node:buffer";
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { type Failure, type FailureCode, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { Reply, signalOf } from "#runtime/rpc/http/connect/reply.ts";
import { type HttpRequest, type HttpResponse, senderOf, sinkOf } from "#runtime/rpc/http/messages.ts";
import { type Caller, callerKey } from "#runtime/rpc/identity.ts";
import { hasMoreValues, isTooDeep, maxLevels, maxValues, tooMany } from "#runtime/schema/json/json-size.ts";
import { turnForJson } from "#runtime/schema/json/json-turn.ts";

/** Who asks by plain HTTP, for the call that is made for it. */
export function optionsFor(caller: Caller): { contextValues: ContextValues } {
  return { contextValues: createContextValues().set(callerKey, caller) };
}

/** A request with what it carries, and where it is answered. */
export interface Exchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly body: AsyncIterable<Uint8Array>;
}

type Parse = (text: string) => unknown;

/** The body as JSON. Only what says that it is JSON is read: a page of another origin cannot send that unasked. */
export async function readJson(given: Exchange, maxBytes: number, parse?: Parse): Promise<unknown> {
  const { "content-type": type = "", "content-encoding": encoding = "identity" } = given.request.headers;
  if (encoding.toLowerCase() !== "identity")
    refuse("invalid_argument", `the body is compressed (${encoding}): send it as it is`, {
      reason: "PROTOCOL_UNSUPPORTED",
    });
  if (!/^application\/json\b/i.test(type)) {
    refuse("invalid_argument", "the body must be JSON, and say so: content-type: application/json", {
      reason: "PROTOCOL_UNSUPPORTED",
    });
  }
  return jsonFromText(await readText(given, maxBytes), parse);
}

/** What a client wrote, however it came. */
export function jsonFromText(text: string, parse: Parse = JSON.parse): unknown {
  if (isTooDeep(text))
    refuse("invalid_argument", `the body is nested deeper than ${maxLevels} levels`, { reason: "INVALID_REQUEST" });
  if (hasMoreValues(text, maxValues))
    refuse("resource_exhausted", `the body has ${tooMany(maxValues)}`, { reason: "MESSAGE_TOO_LARGE" });
  try {
    return parse(text);
  } catch (cause) {
    return refuse("invalid_argument", `the body is not JSON: ${messageFromUnknown(cause)}`, {
      reason: "REQUEST_MALFORMED",
      cause,
    });
  }
}

/** The body, in so many bytes at most, when it may be parsed. */
export async function readText({ request, response, body }: Exchange, maxBytes: number): Promise<string> {
  const text = await textOfBody(body, maxBytes, `the body is over the limit of ${maxBytes} bytes`);
  await turnForJson(text, { sender: senderOf(request), signal: signalOf(response) });
  return text;
}

export async function textOfBody(body: Exchange["body"], maxBytes: number, tooLong: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) refuse("resource_exhausted", tooLong, { reason: "MESSAGE_TOO_LARGE" });
    chunks.push(chunk);
  }
  const whole = Buffer.concat(chunks);
  if (!isUtf8(whole)) refuse("invalid_argument", "the body is not UTF-8", { reason: "REQUEST_MALFORMED" });
  return whole.toString("utf8");
}

export function answerJson(response: HttpResponse, status: number, value: unknown): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(value));
}

/** How often a stream without events shows that it lives, which also finds a peer that is gone. */
const ALIVE_MS = 15_000;

const FIELDS = { "content-type": "text/event-stream", "cache-control": "no-cache" };

/** Resolves when all is written, or the client has left, which ends `texts`. A text is asked for when there is room for it. */
export async function answerStream(response: HttpResponse, texts: AsyncIterable<string>): Promise<void> {
  const reply = new Reply(response, () => ({ status: 200, fields: FIELDS }));
  reply.begin(); // a stream may have nothing to say for long
  const alive = setInterval(() => sinkOf(response).write(": alive\n\n"), ALIVE_MS);
  try {
    for await (const text of texts) await reply.send(Buffer.from(text));
    reply.end(new Uint8Array());
  } catch {
    response.destroy(); // the client has left
  } finally {
    clearInterval(alive);
  }
}

/** By its status, and a body that is in the gateway's own form unless told. */
export function answerFailure(
  response: HttpResponse,
  error: unknown,
  bodyOf: (failure: Failure) => object = plain,
): void {
  const failure = failureFromConnectError(error);
  const retryAfter = retryAfterOf(failure);
  if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter);
  answerJson(response, statusOf(failure), bodyOf(failure));
}

function plain({ code, message, reason, fieldViolations }: Failure) {
  return { code, message, reason, fieldViolations };
}

/** The header that tells when to try again; undefined for a failure that does not say so. */
export function retryAfterOf({ reason, metadata }: Failure): string | undefined {
  const ms = metadata?.retry_in_ms ?? (reason === "SHARE_EXCEEDED" ? 1_000 : undefined);
  return ms === undefined ? undefined : String(Math.ceil(Number(ms) / 1_000));
}

export function statusOf({ code, reason }: Pick<Failure, "code" | "reason">): number {
  return reason === "MESSAGE_TOO_LARGE" ? 413 : (STATUSES[code] ?? 500);
}

/** What HTTP says of a refusal, where it has a word. */
const STATUSES: Partial<Record<FailureCode, number>> = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  already_exists: 409,
  failed_precondition: 409,
  aborted: 409,
  resource_exhausted: 429,
  unavailable: 503,
  deadline_exceeded: 504,
};
