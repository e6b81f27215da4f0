import { expect, test } from "vitest";
import { digestOfArguments, recordedArguments } from "../answers/record-size.ts";
import { differencesOf, differencesOfRequests, isSameArguments } from "./call-identity.ts";
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
  const whole = JSON.stringify('"'.repeat(100_000));
  expect(isSameArguments(digestOfArguments(whole), whole), "an older release recorded it as a digest").toBe(true);
});

test("what differs is named", () => {
  const facts = { sessionId: "s", runId: "r", agent: "a", tool: "t", argumentsJson: "{}" };
  const record = (more: Partial<typeof facts>) => callRecord({ ...facts, ...more });
  expect(differencesOf(record({}), record({}))).toEqual([]);
  const other = { runId: "r2", agent: "b", tool: "u", argumentsJson: '{"x":1}' };
  expect(differencesOf(record({}), record(other))).toEqual(["run", "agent", "tool", "arguments"]);
});

test("SEC-2 of a call in another session, nothing is told but that: it may be another principal's", () => {
  const facts = { sessionId: "s", runId: "", agent: "a", tool: "t", name: "t", argumentsJson: '{"secret":1}' };
  for (const guess of [{}, { argumentsJson: "{}" }, { agent: "b", tool: "u", name: "u", runId: "r" }]) {
    const other = { ...facts, ...guess, sessionId: "s2" };
    expect(differencesOf(callRecord(facts), callRecord(other))).toEqual(["session"]);
    expect(differencesOfRequests(facts, other)).toEqual(["session"]);
  }
});
