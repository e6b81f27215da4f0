import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { takeAttempt } from "../../attempt/attempt.ts";
import { createScriptedModel } from "./scripted-model.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-scripted-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const asked: LanguageModelV4Prompt = [
  { role: "user", content: [{ type: "text", text: "before" }] },
  { role: "assistant", content: [{ type: "text", text: "of a former run" }] },
  { role: "user", content: [{ type: "text", text: "add 2 and 3" }] },
];

const answered: LanguageModelV4Prompt = [
  ...asked,
  { role: "assistant", content: [{ type: "tool-call", toolCallId: "1", toolName: "add", input: {} }] },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: "1",
        toolName: "add",
        output: { type: "json", value: { sum: [5], "a b": null } },
      },
    ],
  },
];

async function replay(script: unknown, prompt = asked) {
  await writeFile(join(directory, "script.json"), typeof script === "string" ? script : JSON.stringify(script));
  const pieces: string[] = [];
  const answer = await takeAttempt(
    createScriptedModel(directory, "script"),
    { prompt },
    { stallMs: 5_000, signal: new AbortController().signal, onPiece: (piece) => pieces.push(piece.text) },
  );
  return { ...answer, pieces };
}

describe("the scripted model", () => {
  test("replays the turn that follows from the prompt, its text in pieces", async () => {
    const { parts, pieces } = await replay({ turns: [{ text: "first of three" }, { text: "second" }] });
    expect(parts).toMatchObject([{ kind: "text", text: "first of three" }]);
    expect(pieces).toEqual(["first ", "of ", "three"]);
    expect((await replay({ turns: [{ text: "first" }, { text: "second" }] }, answered)).parts).toMatchObject([
      { text: "second" },
    ]);
  });

  test("CTR-4 fills in the input and the results, values as values, null too", async () => {
    const calls = [
      {
        name: "show",
        arguments: {
          all: "{{result.add}}",
          one: "{{result.0.sum.0}}",
          none: "{{result.add.a b}}",
          text: "is {{ result.add.sum }}",
        },
      },
    ];
    const { parts } = await replay({ turns: [{ text: "-" }, { text: "{{input}}", calls }] }, answered);
    const [text, call] = parts;
    expect(text).toMatchObject({ text: "add 2 and 3" });
    expect(call?.kind === "call" && JSON.parse(call.argumentsJson)).toEqual({
      all: { sum: [5], "a b": null },
      one: 5,
      none: null,
      text: "is [5]",
    });
  });

  test("tells the prompt that it was asked with", async () => {
    const { parts } = await replay({ turns: [{ text: "-" }, { text: "{{prompt}}" }] }, answered);
    expect(parts).toMatchObject([{ kind: "text", text: JSON.stringify(answered) }]);
  });

  test("a script that runs out, is no script, is missing, or names what is not there is a clear error", async () => {
    await expect(replay({ turns: [{ text: "only" }] }, answered)).rejects.toThrow("ran out: it has no turn 2");
    await expect(replay("{")).rejects.toThrow("is not JSON");
    await expect(replay({ turns: [{ txt: "typo" }] })).rejects.toThrow(/cannot be replayed: turns\.0.*txt/);
    await expect(replay({ turns: [{ text: "{{result.9}}" }] })).rejects.toThrow("{{result.9}} stands for nothing");
    const missing = createScriptedModel(directory, "elsewhere");
    await expect(missing.doStream({ prompt: asked })).rejects.toThrow("there is no script elsewhere.json");
    await expect(createScriptedModel(directory, "../secret").doStream({ prompt: asked })).rejects.toThrow(
      "is not the name",
    );
  });

  test("a delay ends with the request's signal", async () => {
    await writeFile(join(directory, "script.json"), JSON.stringify({ turns: [{ text: "late", delayMs: 60_000 }] }));
    const stop = new AbortController();
    const options = { stallMs: 60_000, signal: stop.signal, onPiece: () => {} };
    const attempt = takeAttempt(createScriptedModel(directory, "script"), { prompt: asked }, options);
    stop.abort(new Error("enough"));
    await expect(attempt).rejects.toThrow("enough");
  });
});
