import { expect, test } from "vitest";
import { callOfFrame, idOfFrame, parseFrame, resultLine } from "./frames.ts";

const LONG = "12345678901234567890";

test("CTR-9 a request is answered by its id, with all its digits", () => {
  const id = idOfFrame(parseFrame(`{"id":${LONG},"method":"caller_tool"}`));
  expect(resultLine(id ?? null, "1")).toBe(`{"jsonrpc":"2.0","id":${LONG},"result":1}\n`);
});

test("CTR-9 a number of many digits is neither a request nor arguments", () => {
  expect(() => parseFrame(LONG)).toThrow("one JSON object");
  const frame = parseFrame(`{"id":1,"method":"caller_tool","params":{"tool":"a","arguments":${LONG}}}`);
  expect(() => callOfFrame(frame)).toThrow("params are");
});
