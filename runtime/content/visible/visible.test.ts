import { expect, test } from "vitest";
import { visibleJson, visibleLog, visibleText } from "./visible.ts";

test.each([
  ["OSC 52, which writes to the clipboard", "a\x1b]52;c;aGk=\x07b", "a␛]52;c;aGk=␇b"],
  ["cursor movements that rewrite the line above", "\x1b[1A\x1b[2Kapproved by alice", "␛[1A␛[2Kapproved by alice"],
  ["a carriage return that begins the line again", "denied\rapproved", "denied␍approved"],
  ["C1, which needs no escape", "\x9b31mred\x9d", "\ufffd31mred\ufffd"],
  ["backspace, DEL and NUL", "ab\b\x7f\0", "ab␈␡␀"],
  ["text that runs backwards", "\u202egpj.exe\u2066\u200f", "\ufffdgpj.exe\ufffd\ufffd"],
])("SEC-7 %s does nothing on a terminal", (_, text, shown) => {
  expect(visibleText(text)).toBe(shown);
});

test("SEC-7 lines, tabs and all letters stay as they are", () => {
  const text = "é\t漢字 👩‍💻\nعربي\n";
  expect(visibleText(text)).toBe(text);
  expect(visibleText("a\r\nb")).toBe("a\nb");
});

test("SEC-7 JSON keeps its value and holds no control character", () => {
  const value = { text: "\x1b[2J\x9b\u202e\x7f\n" };
  const json = visibleJson(JSON.stringify(value));
  expect(JSON.parse(json)).toEqual(value);
  expect(json).toMatch(/^[\x20-\x7e]*$/);
});

test("SEC-7 a line of the log keeps its form and its backslashes, and shows control characters as signs", () => {
  const path = String.raw`C:\root\bin\u001b`;
  const line = `${JSON.stringify({ msg: "a\x1b[2J\r\b\x9b\n", path })}\n`;
  expect(JSON.parse(visibleLog(line))).toEqual({ msg: "a␛[2J␍␈\ufffd\n", path });
  expect(visibleLog(line)).not.toContain("\x1b");
});
