import { expect, test } from "vitest";
import { Failure, messageFromUnknown, refuse } from "./failure.ts";

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
