/**
 * Parts of calls that are not as they should be, in streams of the chat completions API.
 *
 * A weak model writes a call without a name at times. The package leaves it out, or breaks the stream off, according to how
 * its arguments come. Given a name that says so, it reaches the loop, which answers it with an error. A blank name further on
 * belongs to a call that has its name already.
 *
 * Some local servers write arguments as JSON instead of its text: they become text. Others say a whole call once more, at its place
 * or at another one: the package would make two of it, or one whose arguments nobody can read.
 */

import { isObject, jsonFrom } from "#runtime/schema/json-object.ts";

/** In place of a name. */
export const namelessCall = "unnamed";

export interface CallDelta {
  index?: unknown;
  id?: unknown;
  function?: { name?: unknown; arguments?: unknown };
}

/** The last call at each index, with the arguments that came. */
export type BegunCalls = Map<unknown, { index: unknown; id: unknown; name: unknown; text: string }>;

/** Gives whether it changed anything. */
export function mendCall(call: CallDelta, begun: BegunCalls): boolean {
  const { index, id, function: called } = call;
  if (called === undefined) return false;
  const isOfText = called.arguments == null || typeof called.arguments === "string";
  if (!isOfText) called.arguments = JSON.stringify(called.arguments);
  const text = String(called.arguments ?? "");
  const repeated = repeatedCall(call, text, begun);
  if (repeated !== undefined) {
    call.index = repeated.index;
    called.arguments = "";
    return true;
  }
  const known = begun.get(index);
  const { name } = called;
  const isNamed = typeof name === "string" && name.trim() !== "";
  const begins = known === undefined ? typeof name === "string" : isNamed && Boolean(id) && id !== known.id;
  if (begins) begun.set(index, { index, id, name, text });
  else if (known !== undefined) known.text += text;
  if (!begins || isNamed) return !isOfText;
  called.name = namelessCall;
  return true;
}

/** The call that is said once more, under its id or without one; what goes on in the middle of arguments is none. */
function repeatedCall({ index, id, function: { name } = {} }: CallDelta, text: string, begun: BegunCalls) {
  const repeated = [...begun.values()].find((call) => {
    const isSame = id ? id === call.id && (!name || name === call.name) : !name && index === call.index;
    return isSame && text === call.text;
  });
  return repeated !== undefined && isObject(jsonFrom(text)) ? repeated : undefined;
}
