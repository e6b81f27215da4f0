import { expect, test } from "vitest";
import { recordedArguments } from "../answers/record-size.ts";
import { differencesOf, isSameArguments } from "./call-identity.ts";
import { callRecord } from "./record/call-record.ts";

test("the same arguments are the same in any spelling, and empty ones are an empty object", () => {
  expect(isSameArguments('{"a":1,"b":[2]}', ' { "b" : [2], "a" : 1.0 }')).toBe(true);
  expect(isSameArguments("", "{}")).toBe(true);
  for (const [one, other] of [
    ['{"a":1}', '{"a":"1"}'],
    ["[1,2]", "[2,1]"],
    ['{"a":null}', "{}"],
    ["{}", "not json"],
  ] as const) {
    expect(isSameArguments(one, other), `${one} and ${other}`).toBe(false);
  }
});

test("large arguments are told apart by their record, which does not hold them", () => {
  const large = (letter: string) => recordedArguments(JSON.stringify({ text: letter.repeat(300_000) }));
  expect(isSameArguments(large("x"), large("x"))).toBe(true);
  expect(isSameArguments(large("x"), large("y"))).toBe(false);
});

test("what differs is named", () => {
  const facts = { sessionId: "s", runId: "r", agent: "a", tool: "t", argumentsJson: "{}" };
  const record = (more: Partial<typeof facts>) => callRecord({ ...facts, ...more });
  expect(differencesOf(record({}), record({}))).toEqual([]);
  const other = { sessionId: "s2", runId: "r2", agent: "b", tool: "u", argumentsJson: '{"x":1}' };
  expect(differencesOf(record({}), record(other))).toEqual(["session", "run", "agent", "tool", "arguments"]);
});
