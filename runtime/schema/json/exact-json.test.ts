import { expect, test } from "vitest";
import { losesDigits, parseExactly, requireExactIntegers } from "./exact-json.ts";

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
  ['{"a":0.1234567890123456789,"b":[-9007199254740993]}', "the number -9007199254740993, which"],
  ['{"9007199254740993":"9007199254740993","a":[9007199254740992,1e400,100000000000000000000]}', undefined],
])("%s: an integer of which digits would be lost is refused: %s", (text, says) => {
  const reading = expect(() => requireExactIntegers(text));
  if (says) reading.toThrow(says);
  else reading.not.toThrow();
});

test.each([
  '{"id":12345678901234567890,"text":"\\"12345678901234567890\\\\","more":[1e400,-0.1234567890123456789,7]}',
  '["no \\\\\\" end 1e400", 1e400]',
  "1e400",
])("%s is what it was when it is read and written", (json) => {
  expect(JSON.stringify(parseExactly(json)).replace(/ /g, "")).toBe(json.replace(/ /g, ""));
});

test.each([
  '{"a":"b",12345678901234567890:1}',
  '{"a":"b",12345678901234567890 \t:1}',
  "[01234567890123456789]",
  "[12345678901234567890.]",
  "[.12345678901234567890]",
  "[1-12345678901234567890]",
  "[12345678901234567890e]",
  "[1e+]1e400",
])("%s is no JSON, whatever is marked in it, and what is said of it is said of the text as it is", (text) => {
  const said = (parse: (json: string) => unknown) => {
    try {
      return parse(text);
    } catch (error) {
      return String(error);
    }
  };
  expect(said(parseExactly)).toMatch(/^SyntaxError/);
  expect(said(parseExactly)).toBe(said(JSON.parse));
});

test("SEC-5 one long number makes a text of many values cost not much more than it does anyway", () => {
  const elements = Array.from({ length: 1_000_000 }, () => "1").join();
  const text = `[${elements},12345678901234567890]`;
  const ms = (work: (json: string) => unknown) => {
    const begunAt = performance.now();
    work(text);
    return performance.now() - begunAt;
  };
  const plain = Math.min(ms(JSON.parse), ms(JSON.parse), ms(JSON.parse));
  const exact = Math.min(ms(parseExactly), ms(parseExactly), ms(parseExactly));
  expect(exact / plain).toBeLessThan(20);
});

test("a member named __proto__ keeps its digits, and makes nothing of the object", () => {
  const text = '{"__proto__":12345678901234567890,"in":{"__proto__":[1e400]}}';
  expect(JSON.stringify(parseExactly(text))).toBe(text);
});

test("a number of millions of digits is kept, and very many long ones are not read", () => {
  const long = `{"id":${"7".repeat(8_000_000)}}`;
  expect(JSON.stringify(parseExactly(long)) === long).toBe(true);
  expect(losesDigits(long)).toBe(true);
  const many = `[${"1e400,".repeat(200_000)}1e400]`;
  expect(() => parseExactly(many)).toThrow("more than 200000 numbers of so many digits are not read");
});
