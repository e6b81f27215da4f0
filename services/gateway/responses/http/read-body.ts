import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { isTooDeep, maxLevels, parseBounded } from "#runtime/schema/json-size.ts";
import { readJsonText } from "../../plain/exchange.ts";
import type { ResponsesExchange } from "../exchange.ts";

/** The body as JSON. */
export async function readBody(exchange: ResponsesExchange): Promise<unknown> {
  return jsonFromText(await readJsonText(exchange, exchange.parts.maxBytes));
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
