import { onFirstUse } from "#runtime/collections/on-first-use.ts";
import { mayLoseDigits, parseExactly } from "#runtime/schema/json/exact-json.ts";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import type { AskedCall } from "../agent/agent-server.ts";

/** The arguments of the calls of a body as they were written, since a double does not hold all numbers. */
export function writtenArguments(bodyText: string): (call: AskedCall) => string {
  const exactBody = onFirstUse(() => parseExactly(bodyText));
  const written = (call: AskedCall) => (mayLoseDigits(bodyText) ? argumentsIn(exactBody(), call) : call.arguments);
  return (call) => JSON.stringify(written(call) ?? {});
}

function argumentsIn(body: unknown, { id }: AskedCall): unknown {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  const asked = messages.find((message) => isObject(message) && JSON.stringify(message.id) === JSON.stringify(id));
  return fieldsOf(fieldsOf(asked).params).arguments;
}
