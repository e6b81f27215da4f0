import { expect, test } from "vitest";
import { fromMarked, losesDigits, markNumbers, numberAsWritten, parseExactly } from "./exact-json.ts";

test.each([
  ['{"id":12345678901234567890}', true],
  ["1e400", true],
  ["[0.1234567890123456789]", true],
  ['{"id":"order-8599e705-fbea"}', false],
  ['{"digits":"12345678901234567890"}', false],
  ["[9007199254740991, 1e300, 0.1]", false],
])("%s: a number loses digits where it is read as a double: %s", (text, isLost) => {
  expect(losesDigits(text)).toBe(isLost);
  expect(JSON.stringify(parseExactly(text)) === JSON.stringify(JSON.parse(text))).toBe(!isLost);
});

test.each([
  '{"id":12345678901234567890,"text":"\\"12345678901234567890\\\\","more":[1e400,-0.1234567890123456789,7]}',
  '["no \\\\\\" end 1e400", 1e400]',
  "1e400",
])("%s passes a reader that knows doubles alone, and is what it was", (json) => {
  const passed = JSON.parse(markNumbers(json, "mark:"));
  expect(JSON.stringify(fromMarked(passed, "mark:", numberAsWritten))).toBe(JSON.stringify(parseExactly(json)));
});
