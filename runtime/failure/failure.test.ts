import { expect, test } from "vitest";
import { Failure, MAX_MESSAGE_CHARACTERS, messageFromUnknown, refuse } from "./failure.ts";
import { startedNothing } from "./not-started.ts";

test("refuse throws a failure that keeps code, reason, metadata and cause", () => {
  const cause = new Error("disk");
  try {
    refuse("not_found", "no such tool", { reason: "TOOL_NOT_FOUND", metadata: { tool: "x" }, cause });
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(Failure);
    expect(error).toMatchObject({ code: "not_found", reason: "TOOL_NOT_FOUND", metadata: { tool: "x" }, cause });
  }
});

test("a message is found in whatever was thrown", () => {
  expect(messageFromUnknown(new Error("a"))).toBe("a");
  expect(messageFromUnknown(new TypeError())).toBe("TypeError");
  expect(messageFromUnknown("b")).toBe("b");
  expect(messageFromUnknown({ message: "c" })).toBe("c");
  expect(messageFromUnknown(new AggregateError([new Error("d"), new Error("e")]))).toBe("d; e");
  expect(messageFromUnknown(undefined)).toBe("undefined");
});

test("SEC-5 a message that a peer has chosen is as long as a person reads, and fits every wire", () => {
  const long = `${"x".repeat(20_000_000)} the end`;
  for (const text of [
    messageFromUnknown(new Error(long)),
    new Failure("internal", long, { reason: "INTERNAL" }).message,
  ]) {
    expect(text).toHaveLength(MAX_MESSAGE_CHARACTERS);
    expect(text).toMatch(/^xxx.*x… \(20000008 characters\)$/);
  }
  const half = 'no property "\ud800"';
  expect(messageFromUnknown(new Error(half))).toBe('no property "\ufffd"');
  expect(new Failure("invalid_argument", half, { reason: "INVALID_REQUEST" }).message.isWellFormed()).toBe(true);
});

test("LOOP-14 a refusal says that nothing was started, but not where its reason says that the outcome is unknown", () => {
  const refusal = (reason: "SHARE_EXCEEDED" | "OUTCOME_UNKNOWN") =>
    new Failure("resource_exhausted", "the answer has more than 2000000 values", { reason });
  expect(startedNothing(refusal("SHARE_EXCEEDED"))).toBe(true);
  expect(startedNothing(refusal("OUTCOME_UNKNOWN"))).toBe(false);
  expect(startedNothing(new Failure("unavailable", "gone", { reason: "CALL_NOT_STARTED" }))).toBe(true);
  expect(startedNothing(new Failure("unavailable", "gone", { reason: "SERVICE_UNAVAILABLE" }))).toBe(false);
  expect(startedNothing(new Error("not found"))).toBe(false);
});
