import { describe, expect, it } from "vitest";
import { durationOf } from "../words.ts";
import { prettyJson } from "./pretty-json.ts";

describe("JSON as one reads it", () => {
  it("is laid out as usual", () => {
    const value = { a: [1, -2.5e3, true, null], b: {}, c: [], d: { e: 'x "{,}: [\\ é\n' }, f: " " };
    const usual = JSON.stringify(value, undefined, 2);
    expect(prettyJson(JSON.stringify(value))).toBe(usual);
    expect(prettyJson(` ${JSON.stringify(value, undefined, 7)}\n`)).toBe(usual);
    expect(prettyJson('{"a":"caf\\u00e9"}'), "letters stand for themselves").toBe('{\n  "a": "café"\n}');
    for (const plain of ["7", '"text"', "true", "{}", "[]", "{ }"])
      expect(prettyJson(plain)).toBe(plain.replace(" ", ""));
  });

  it("has the numbers and names that it was written with", () => {
    expect(prettyJson('{"account":12345678901234567890,"price":1.10}')).toBe(
      '{\n  "account": 12345678901234567890,\n  "price": 1.10\n}',
    );
    expect(prettyJson('{"b":1,"a":2,"1":3,"a":4}').match(/"\w+"/g)).toEqual(['"b"', '"a"', '"1"', '"a"']);
  });

  it("is the text itself where it is none", () => {
    for (const text of ["", "{", "hello {}", "{'a':1}"]) expect(prettyJson(text)).toBe(text);
  });
});

it.each([
  [-2_000, "0 ms"],
  [340.4, "340 ms"],
  [2_400, "2.4 s"],
  [190_000, "3 min 10 s"],
  [7_500_000, "2 h 5 min"],
])("%d ms are %s, also where the browser's clock is behind the suite's", (ms, text) => {
  expect(durationOf(ms)).toBe(text);
});
