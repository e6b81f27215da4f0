import { expect, it } from "vitest";
import { textsFrom } from "./asked-arguments.tsx";

it.each([
  [
    '{"question":"Ship?","why":"late"}',
    [
      ["question", "Ship?"],
      ["why", "late"],
    ],
  ],
  ['{"question":"Ship?","count":2}', undefined],
  [JSON.stringify({ question: "x".repeat(501) }), undefined],
  ["[1]", undefined],
  ["null", undefined],
  ["{", undefined],
])("ORCH-12 what is asked in short texts is read as such: %s", (json, texts) => {
  expect(textsFrom(json)).toEqual(texts);
});
