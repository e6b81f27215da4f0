import { type Answer, success } from "../answer.ts";

/** TOOL-2: nobody runs it; the arguments are the result. */
export function executeInternal(args: unknown): Answer {
  return success({ success: true, args });
}
