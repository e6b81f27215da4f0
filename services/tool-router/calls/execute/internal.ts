import { type Answer, successJson } from "../answers/answer.ts";

/** TOOL-2: nobody runs it; the arguments, which are a JSON object, are the result as they were written. */
export function executeInternal(argumentsJson: string): Answer {
  return successJson(`{"success":true,"args":${argumentsJson || "{}"}}`);
}
