/**
 * What an error of a provider means: whether asking again may help, and what it says.
 *
 * The provider's own word decides, where it gives one. Without one: what the network or the provider's server did passes,
 * what is wrong with the request or with the program does not.
 */

import {
  APICallError,
  EmptyResponseBodyError,
  InvalidResponseDataError,
  JSONParseError,
  TypeValidationError,
} from "@ai-sdk/provider";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import { ModelInterrupted } from "../attempt/answer.ts";
import { ModelStalled } from "../attempt/attempt.ts";
import { parsedOr } from "../prompt/result-output.ts";

export function isRetryable(thrown: unknown): boolean {
  const error = toldError(thrown);
  if (error instanceof ModelStalled || error instanceof ModelInterrupted) return true;
  if (error instanceof Failure) return false;
  if (chainOf(error).some(isOfNetwork)) return true;
  const { isRetryable, statusCode } = fieldsOf(error);
  if (typeof statusCode === "number" && statusCode < 300) return true; // its server said that all is well, and nothing that can be read
  if (typeof isRetryable === "boolean") return isRetryable;
  const status = statusOf(error);
  if (status !== undefined) return status >= 500 || passingStatuses.has(status);
  if (error instanceof Error) return isGarbage(error) || error.name === "TimeoutError" || error.name === "AbortError";
  return !wordsOf(error).some((word) => lastingWords.test(word)); // an error inside a stream
}

/** A time-out, a conflict of requests, too early, a limit. */
const passingStatuses: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** Types and codes of errors inside a stream that the same request would meet again. */
const lastingWords = /invalid|auth|permission|forbidden|not_found|too_large|length_exceeded|quota|billing|unsupported/;

/** Codes of Node, of undici and of its parser. */
const networkCodes =
  /^(E(CONN|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOST|NET)|UND_ERR_(SOCKET|ABORTED|CLOSED|\w+_TIMEOUT)|HPE_|ERR_HTTP2_|ERR_STREAM_PREMATURE_CLOSE)/;

function isOfNetwork(error: unknown): boolean {
  const { code } = fieldsOf(error);
  return typeof code === "string" && networkCodes.test(code);
}

/** The provider's server answered with something unreadable. */
function isGarbage(error: Error): boolean {
  return [JSONParseError, TypeValidationError, InvalidResponseDataError, EmptyResponseBodyError].some((kind) =>
    kind.isInstance(error),
  );
}

function statusOf(error: unknown): number | undefined {
  const { statusCode, status, code } = fieldsOf(error);
  return [statusCode, status, code].map(Number).find((number) => number >= 400 && number < 600);
}

/** What it calls itself, also where it is wrapped. */
function wordsOf(error: unknown): string[] {
  const { type, code } = fieldsOf(error);
  const own = [type, code].filter((word) => typeof word === "string");
  const inner = innerOf(error);
  return inner === undefined ? own : [...own, ...wordsOf(inner)];
}

/** An error of another form than its package knows, which that found in a stream. */
function toldError(error: unknown): unknown {
  if (!TypeValidationError.isInstance(error)) return error;
  const { error: inner, object } = fieldsOf(error.value);
  return inner !== undefined || object === "error" ? error.value : error;
}

function innerOf(error: unknown): unknown {
  const { error: inner, response, data } = fieldsOf(error);
  return inner ?? fieldsOf(response).error ?? fieldsOf(data).error;
}

/** Why the run ends that is given up with the error: clients act on it. What the provider calls the error counts before its text. */
export function endReasonOfModelError(thrown: unknown, modelId: string): RunEndReason {
  const error = toldError(thrown);
  const words = wordsOf(error);
  const hasWord = (pattern: RegExp) => words.some((word) => pattern.test(word));
  const status = statusOf(error);
  if (hasWord(/context_(length|size)/)) return RunEndReason.CONTEXT_LENGTH_EXCEEDED;
  if (hasWord(/quota|billing/) || status === 402) return RunEndReason.INSUFFICIENT_QUOTA;
  if (hasWord(/rate_limit/) || status === 429) return RunEndReason.RATE_LIMIT_EXCEEDED;
  const isTooLong = tooLong.test(messageOfModelError(error, modelId));
  return isTooLong ? RunEndReason.CONTEXT_LENGTH_EXCEEDED : RunEndReason.MODEL_ERROR;
}

/** How providers without a code for it say that a prompt is too long. */
const tooLong = /context (length|window|size|limit)|(prompt|input) is too long|prompt length|input token count/i;

function chainOf(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let next = error; next !== undefined && !chain.includes(next); next = fieldsOf(next).cause) chain.push(next);
  return chain;
}

/** The error in words for the client of the run. */
export function messageOfModelError(thrown: unknown, modelId: string): string {
  const error = toldError(thrown);
  if (isOfProgram(error)) return `the provider of model "${modelId}" is broken: ${error.name}: ${error.message}`;
  if (error === undefined || error === null || error === "")
    return `the provider of model "${modelId}" failed without a word of why`;
  if (APICallError.isInstance(error) && error.data === undefined) return messageOfAnswer(error);
  if (error instanceof Error || typeof error !== "object") return messageFromUnknown(error);
  return wordsIn(error) ?? messageFromUnknown(JSON.stringify(error));
}

/** Of an answer that the package could not read: what it says in a form of its own, and from where it came, which may be the fault. */
function messageOfAnswer(error: APICallError): string {
  const { statusCode, responseBody = "", url } = error;
  const words = wordsIn(parsedOr(responseBody, undefined)) ?? messageFromUnknown(error);
  if (statusCode === undefined || !URL.canParse(url)) return words;
  const { origin, pathname } = new URL(url);
  return `${words} (${statusCode} from ${origin}${pathname})`;
}

const innerNames = ["message", "error", "response", "data"];

/** The first text among what an error says, or what it says in detail. */
function wordsIn(error: unknown): string | undefined {
  if (typeof error === "string") return error.trim() === "" ? undefined : messageFromUnknown(error);
  if (Array.isArray(error)) return wordsIn(error[0]);
  if (!isObject(error)) return undefined;
  const told = innerNames.map((name) => wordsIn(error[name])).find((words) => words !== undefined);
  const { detail } = error;
  if (told !== undefined || typeof detail !== "object" || detail === null) return told ?? wordsIn(detail);
  return messageFromUnknown(JSON.stringify(detail));
}

function isOfProgram(error: unknown): error is Error {
  const kinds = [TypeError, RangeError, ReferenceError, SyntaxError];
  return kinds.some((kind) => error instanceof kind) && !chainOf(error).some(isOfNetwork);
}
