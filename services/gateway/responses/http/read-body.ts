import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { isTooDeep, maxLevels, parseBounded } from "#runtime/schema/json-size.ts";
import { readText } from "../../plain/exchange.ts";
import type { ResponsesExchange } from "../exchange.ts";

/** The body as JSON. Only what says that it is JSON is read: a page of another origin cannot send that unasked. */
export async function readBody(exchange: ResponsesExchange): Promise<unknown> {
  if (!/^application\/json\b/i.test(exchange.request.headers["content-type"] ?? "")) {
    refuse("invalid_argument", "the body must be JSON, and say so: content-type: application/json", {
      reason: "PROTOCOL_UNSUPPORTED",
    });
  }
  return jsonFromText(await readText(exchange, exchange.parts.maxBytes));
}

/** What a client wrote, however it came. */
export function jsonFromText(text: string): unknown {
  if (isTooDeep(text))
    refuse("invalid_argument", `the body is nested deeper than ${maxLevels} levels`, { reason: "INVALID_REQUEST" });
  try {
    return parseBounded(text);
  } catch (cause) {
    return refuse("invalid_argument", `the body is not JSON: ${messageFromUnknown(cause)}`, {
      reason: "REQUEST_MALFORMED",
      cause,
    });
  }
}
