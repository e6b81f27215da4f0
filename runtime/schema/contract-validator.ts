import { createValidator, type Validator } from "@bufbuild/protovalidate";

/** Holds messages to the constraints of the contract. One a process, since it works out once what each message is held to. */
export const contractValidator: Validator = createValidator({ regexMatch: matches });

const expressions = new Map<string, RegExp>();

/**
 * The patterns are the contract's own, a class of characters and a length each, which say the same to every engine; that of
 * the language is many times faster than the validator's.
 */
function matches(pattern: string, text: string): boolean {
  const known = expressions.get(pattern) ?? new RegExp(pattern, "u");
  expressions.set(pattern, known);
  return known.test(text);
}
