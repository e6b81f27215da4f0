import { InvalidArgumentError } from "commander";
import { integerForm } from "#runtime/config/forms.ts";

/** What every whole number of a request can hold. */
const LARGEST = 2 ** 31 - 1;

/** Reads the value of an option, or refuses it as the services refuse a setting. */
export function wholeNumber({ min = 0, max = LARGEST } = {}): (text: string) => number {
  const { expected, parse } = integerForm({ min, max });
  return (text) => {
    const value = parse(text);
    if (value === undefined) throw new InvalidArgumentError(`expected ${expected}`);
    return value;
  };
}

export const portNumber = wholeNumber({ max: 65_535 });
