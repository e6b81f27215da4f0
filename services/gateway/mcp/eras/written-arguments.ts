import { isJsonObject, parseKeepingNumbers } from "../../plain/json-text.ts";
import type { AskedCall } from "../agent/agent-server.ts";

/** The arguments of the calls of a body as they were written, since a double does not hold all numbers. */
export function writtenArguments(bodyText: string): (call: AskedCall) => string {
  const isExact = !/\d{16}|\d[eE]|\.\d{12}/.test(bodyText);
  return (call) =>
    isExact ? JSON.stringify(call.arguments) : (argumentsIn(bodyText, call) ?? JSON.stringify(call.arguments));
}

function argumentsIn(bodyText: string, { id }: AskedCall): string | undefined {
  const body = parseKeepingNumbers(bodyText);
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  const asked = messages.find((message) => isJsonObject(message) && JSON.stringify(message.id) === JSON.stringify(id));
  const params = isJsonObject(asked) && isJsonObject(asked.params) ? asked.params : {};
  return params.arguments === undefined ? undefined : JSON.stringify(params.arguments);
}
