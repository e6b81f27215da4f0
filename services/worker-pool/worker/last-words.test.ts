import { expect, test } from "vitest";
import { createLastWords } from "./last-words.ts";

test("WORK-8 one long line, as of all extension modules, leaves room for what was told before it", () => {
  const words = createLastWords();
  words.add('File "tool.py", line 7 in boom');
  words.add(`Extension modules: ${"numpy.core._multiarray_umath, ".repeat(300)}`);
  expect(words.tail()).toMatch(/^File "tool.py", line 7 in boom\n/);
});
