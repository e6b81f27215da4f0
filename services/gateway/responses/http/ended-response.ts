import type { HttpResponse } from "#runtime/rpc/http/messages.ts";
import { answerJson } from "../../plain/exchange.ts";
import { NO_ANSWER, type ResponseResource } from "../rendering/resource.ts";
import type { ResponseError } from "./refusals.ts";

/** Why there is no answer. */
export function faultOf({ status, error }: ResponseResource): ResponseError | undefined {
  if (status === "cancelled") return { ...NO_ANSWER, message: "the run was canceled", code: "canceled" };
  return status === "failed" ? (error as ResponseError) : undefined;
}

/**
 * Some clients read no `status`, and took a response that failed for an empty answer: it is told as an error. Its status is 400, the only
 * one that no client sends again by itself (AI SDK: 5xx, LangChain: all but a few), as that would be another run. Where the model said
 * nothing before its provider's limit, another run does no harm, and clients know what a 429 is.
 */
export function answerEnded(
  response: HttpResponse,
  ended: ResponseResource,
  formOf: (ended: ResponseResource) => object,
): void {
  const error = faultOf(ended);
  if (error === undefined) {
    answerJson(response, 200, formOf(ended));
    return;
  }
  response.setHeader("x-should-retry", "false"); // the run has retried what can be
  const isOnlyLimited = error.code === "rate_limit_exceeded" && ended.output.length === 0;
  answerJson(response, isOnlyLimited ? 429 : 400, { error });
}
