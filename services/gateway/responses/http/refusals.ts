import { failureFromConnectError } from "#runtime/failure/connect.ts";
import type { HttpResponse } from "#runtime/rpc/http/messages.ts";
import { answerFailure, answerJson, retryAfterOf, statusOf } from "../../plain/exchange.ts";

/** An error in the specification's form: `code` is our reason, but where the specification names one itself. */
export interface ResponseError {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  /** The field that is at fault, or nothing; never null, as the AI SDK shows no error without this text. */
  readonly param: string;
}

export function responseErrorFrom(error: unknown): ResponseError {
  const failure = failureFromConnectError(error);
  const { message, reason, fieldViolations } = failure;
  const type = TYPES[statusOf(failure)] ?? "server_error";
  const field = fieldViolations?.[0]?.field ?? "";
  const [, option] = /^options\.(\w+)/.exec(field) ?? [];
  const param = option === undefined ? field : (PARAMS[option] ?? "");
  const isPrevious = reason === "RUN_NOT_FOUND" && param === "previous_response_id";
  return { type, code: isPrevious ? "previous_response_not_found" : reason, message, param };
}

/** OpenAI's clients send again what is in conflict (409), which helps only where the failure says so. */
export function answerRefusal(response: HttpResponse, error: unknown): void {
  const failure = failureFromConnectError(error);
  const isFinal = /^(failed_precondition|already_exists)$/.test(failure.code) && retryAfterOf(failure) === undefined;
  if (isFinal) response.setHeader("x-should-retry", "false");
  answerFailure(response, failure, () => ({ error: responseErrorFrom(failure) }));
}

/** HTTP has a status for it, and the failures of services have none. */
export function answerMethodRefusal(response: HttpResponse, message: string): void {
  const error: ResponseError = { type: "invalid_request_error", code: "PROTOCOL_UNSUPPORTED", message, param: "" };
  answerJson(response, 405, { error });
}

/** What a request calls the options of its run. */
const PARAMS: Readonly<Record<string, string>> = {
  allowed_tools: "allowed_tools",
  tool_choice: "tool_choice",
  function_tools: "tools",
  mcp_servers: "tools",
};
const TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found",
  409: "invalid_request_error",
  413: "invalid_request_error",
  429: "too_many_requests",
};
