import {
  APICallError,
  InvalidPromptError,
  JSONParseError,
  LoadAPIKeyError,
  TypeValidationError,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";
import { ModelInterrupted } from "../attempt/answer.ts";
import { ModelStalled } from "../attempt/attempt.ts";
import { endReasonOfModelError, messageOfModelError } from "./provider-errors.ts";
import { decideRetry } from "./retry.ts";

const backoff = () => createBackoff({ initialMs: 77, maxMs: 77, jitter: 0 });
const decide = (error: unknown, nowMs = 0) => decideRetry(error, backoff(), nowMs);
const again = { kind: "again", afterMs: 77 };

function apiError(statusCode: number | undefined, more: { isRetryable?: boolean; cause?: unknown } = {}) {
  return new APICallError({
    message: "no",
    url: "",
    requestBodyValues: {},
    ...(statusCode && { statusCode }),
    ...more,
  });
}

const withCode = (error: Error, code: string) => Object.assign(error, { code });
const withCause = (message: string, code: string) =>
  new TypeError(message, { cause: withCode(new Error("gone"), code) });

describe("an error of a model's provider", () => {
  test.each<[string, unknown]>([
    ...[408, 409, 429, 500, 502, 503, 504, 529].map((status): [string, unknown] => [`${status}`, apiError(status)]),
    ["that the provider calls retryable", apiError(400, { isRetryable: true })],
    ["of a refused connection", withCode(new Error("no"), "ECONNREFUSED")],
    ["of a reset in mid stream, as undici tells it", withCause("terminated", "UND_ERR_SOCKET")],
    ["of a request that failed on its way", withCause("fetch failed", "ENOTFOUND")],
    ["of a reset under a status of success", apiError(200, { cause: withCode(new Error("gone"), "ECONNRESET") })],
    ["of a stall", new ModelStalled(5)],
    ["of a stream without an end", new ModelInterrupted("cut")],
    ["of a part that cannot be parsed", new JSONParseError({ text: "{", cause: new SyntaxError("no") })],
    ["of the package's own time", new DOMException("late", "TimeoutError")],
    ["of another package, with a status", Object.assign(new Error("busy"), { status: 503 })],
    ["told in a stream", { message: "out of memory", code: 500 }],
    ["told in a stream as a word", "overloaded"],
    ["told in a stream by its type", { type: "overloaded_error", message: "Overloaded" }],
    ["told in a stream, wrapped", { type: "response.failed", response: { error: { code: "server_error" } } }],
  ])("LOOP-11 %s is asked again", (_, error) => {
    expect(decide(error)).toEqual(again);
  });

  test.each<[string, unknown]>([
    ...[400, 401, 403, 404, 413, 422].map((status): [string, unknown] => [`${status}`, apiError(status)]),
    ["that the provider calls final", apiError(503, { isRetryable: false })],
    ["of the package's program", new TypeError("Cannot read properties of undefined (reading 'id')")],
    ["of its program, another one", new RangeError("Invalid array length")],
    ["without a word on what it is", new Error("broken")],
    ["of a missing key", new LoadAPIKeyError({ message: "no key" })],
    ["of a prompt", new InvalidPromptError({ prompt: [], message: "no" })],
    ["of what it cannot do", new UnsupportedFunctionalityError({ functionality: "tools" })],
    ["of ours", new Failure("unavailable", "no", { reason: "SERVICE_UNAVAILABLE" })],
    ["of another package, with a status", Object.assign(new Error("no"), { status: 401 })],
    ["told in a stream", { type: "invalid_request_error", message: "too long" }],
    ["told in a stream, with its status", { message: "no such model", code: 404 }],
    [
      "told in a stream in a form of its own",
      new TypeValidationError({ value: { object: "error", message: "too long", code: 400 }, cause: new Error("no") }),
    ],
    ["told in a stream, wrapped", { type: "error", error: { code: "insufficient_quota", message: "pay" } }],
  ])("LOOP-11 %s ends the asking at once", (_, error) => {
    expect(decide(error)).toEqual({ kind: "give_up" });
  });

  const nowMs = Date.UTC(2026, 10, 21, 12, 0, 0);
  test.each<[Record<string, string>, number]>([
    [{ "retry-after": "2" }, 2_000],
    [{ "Retry-After": "0.5" }, 500],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "Sat, 21 Nov 2026 12:00:30 GMT" }, 30_000],
    [{ "retry-after": "Sat, 21 Nov 2026 11:00:00 GMT" }, 0],
    [{ "retry-after-ms": "1500", "retry-after": "9" }, 1_500],
    [{ "retry-after-ms": "soon", "retry-after": "3" }, 3_000],
    [{ "retry-after": "" }, 77],
    [{ "retry-after": "-5" }, 77],
    [{ "retry-after": "tomorrow" }, 77],
    [{ "retry-after": "Infinity" }, 77],
  ])("LOOP-11 with headers %j is asked again after %i ms", (responseHeaders, afterMs) => {
    const error = new APICallError({ message: "", url: "", requestBodyValues: {}, statusCode: 429, responseHeaders });
    expect(decide(error, nowMs)).toEqual({ kind: "again", afterMs });
    const ofOther = Object.assign(new Error("busy"), { status: 429, headers: new Headers(responseHeaders) });
    expect(decide(ofOther, nowMs)).toEqual({ kind: "again", afterMs });
  });

  test("LOOP-11 what Google says of a retry in its body is obeyed", () => {
    const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.07s" }];
    const responseBody = JSON.stringify([{ error: { code: 429, details } }], undefined, 2);
    const error = new APICallError({ message: "", url: "", requestBodyValues: {}, statusCode: 429, responseBody });
    expect(decide(error)).toEqual({ kind: "again", afterMs: 34_070 });
  });

  test.each<[unknown, string]>([
    [apiError(401), "no"],
    [new TypeError("x is undefined"), 'the provider of model "tiny" is broken: TypeError: x is undefined'],
    [withCause("terminated", "UND_ERR_SOCKET"), "terminated"],
    [{ message: "out of memory" }, "out of memory"],
    [{ type: "response.failed", response: { error: { message: "server error" } } }, "server error"],
    [{ type: "odd" }, '{"type":"odd"}'],
    ["plain", "plain"],
    [undefined, 'the provider of model "tiny" failed without a word of why'],
    [null, 'the provider of model "tiny" failed without a word of why'],
    ["", 'the provider of model "tiny" failed without a word of why'],
  ])("LOOP-1 is told to the client in words: %o", (error, words) => {
    expect(messageOfModelError(error, "tiny")).toBe(words);
  });

  const url = "http://model/v1/chat/completions";
  const refusedWith = (statusCode: number, body: unknown) => {
    const responseBody = typeof body === "string" ? body : JSON.stringify(body);
    return new APICallError({
      message: "Bad",
      url: `${url}?key=secret`,
      requestBodyValues: {},
      statusCode,
      responseBody,
    });
  };
  const inStream = (value: object) => new TypeValidationError({ value, cause: new Error("no") });
  test.each<[string, unknown, string]>([
    ["nothing but its status", refusedWith(404, "404 page not found"), `Bad (404 from ${url})`],
    ["a list, as Gemini", refusedWith(400, [{ error: { message: "no key", code: 400 } }]), `no key (400 from ${url})`],
    ["a text, as Ollama", refusedWith(400, { error: "no tools" }), `no tools (400 from ${url})`],
    ["detail, as FastAPI", refusedWith(401, { detail: "Unauthorized" }), `Unauthorized (401 from ${url})`],
    [
      "details, as Mistral",
      refusedWith(422, { object: "error", message: { detail: [{ loc: ["body", "n"], msg: "extra" }] } }),
      `[{"loc":["body","n"],"msg":"extra"}] (422 from ${url})`,
    ],
    ["no detail", refusedWith(400, { error: { message: "no", detail: null } }), `no (400 from ${url})`],
    ["a message and details", refusedWith(400, { message: "no", detail: { id: 1 } }), `no (400 from ${url})`],
    ["an empty detail", refusedWith(400, { detail: "" }), `Bad (400 from ${url})`],
    ["a text in a stream", inStream({ error: "runner stopped" }), "runner stopped"],
    ["an object in a stream, as vLLM", inStream({ object: "error", message: "boom", code: 500 }), "boom"],
  ])("LOOP-1 is told in its own words when it says %s", (_, error, words) => {
    expect(messageOfModelError(error, "tiny")).toBe(words);
  });

  const ofApi = (statusCode: number, error: { message?: string; type?: string; code?: string }) =>
    new APICallError({ message: error.message ?? "no", url: "", requestBodyValues: {}, statusCode, data: { error } });
  test.each<[unknown, keyof typeof RunEndReason]>([
    [ofApi(400, { type: "invalid_request_error", code: "context_length_exceeded" }), "CONTEXT_LENGTH_EXCEEDED"],
    [ofApi(400, { message: "prompt is too long: 9 tokens > 8 maximum" }), "CONTEXT_LENGTH_EXCEEDED"],
    [ofApi(400, { type: "exceed_context_size_error" }), "CONTEXT_LENGTH_EXCEEDED"],
    [{ type: "response.failed", response: { error: { code: "context_length_exceeded" } } }, "CONTEXT_LENGTH_EXCEEDED"],
    [ofApi(429, { code: "rate_limit_exceeded" }), "RATE_LIMIT_EXCEEDED"],
    [apiError(429), "RATE_LIMIT_EXCEEDED"],
    [{ type: "rate_limit_error", message: "slow down" }, "RATE_LIMIT_EXCEEDED"],
    [
      ofApi(400, { message: "input length and `max_tokens` exceed context limit: 9 + 2 > 8" }),
      "CONTEXT_LENGTH_EXCEEDED",
    ],
    [
      ofApi(400, { message: "This model's maximum prompt length is 8 but the request contains 9 tokens." }),
      "CONTEXT_LENGTH_EXCEEDED",
    ],
    [ofApi(400, { message: "Input is too long for requested model." }), "CONTEXT_LENGTH_EXCEEDED"],
    [refusedWith(400, { object: "error", message: "maximum context length is 8 tokens" }), "CONTEXT_LENGTH_EXCEEDED"],
    [ofApi(429, { message: "slow down: requests with a long context window are limited" }), "RATE_LIMIT_EXCEEDED"],
    [ofApi(402, { message: "Insufficient Balance" }), "INSUFFICIENT_QUOTA"],
    [ofApi(429, { type: "insufficient_quota" }), "INSUFFICIENT_QUOTA"],
    [ofApi(400, { type: "invalid_request_error" }), "MODEL_ERROR"],
    [apiError(500), "MODEL_ERROR"],
    [undefined, "MODEL_ERROR"],
  ])("LOOP-18 ends the run with a reason that its clients act on: %j", (error, reason) => {
    expect(endReasonOfModelError(error, "tiny")).toBe(RunEndReason[reason]);
  });
});
