import { messageFromUnknown, refuseRequest } from "../../failure/failure.ts";
import { parseExactly } from "../json/exact-json.ts";
import { isObject } from "../json-object.ts";

/** The arguments of a call, none for an empty text. Refuses what is no JSON object; numbers that no double holds are kept, unless read otherwise. */
export function parseToolArguments(argumentsJson: string, parse = parseExactly): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = argumentsJson === "" ? {} : parse(argumentsJson);
  } catch (error) {
    refuse(`are no JSON: ${messageFromUnknown(error)}`, "is no JSON text");
  }
  return isObject(parsed) ? parsed : refuse("are no JSON object", "is no JSON object");
}

function refuse(words: string, message: string): never {
  refuseRequest(`the arguments ${words}`, { field: "arguments_json", message });
}
