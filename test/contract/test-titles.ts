import type { SourceFile } from "../architecture/source-files.ts";

/** A test as it is declared: its title as it is written, that of the group in which it stands, and what it does. */
export interface DeclaredTest {
  readonly title: string;
  readonly group: string;
  readonly body: string;
}

/** `test("…", …)`, `it("…", …)`, `describe("…", …)`, and the second bracket of their `.each(…)("…", …)`. */
const declaration =
  /(\b(?:test|it|describe)|\)|\]|`)\(\s*(["`])((?:(?!\2)[^\n\\]|\\.)+)\2,\s*(?:\{[^}]*\},\s*)?(?:async\s*)?\(/g;

export function declaredTests({ text }: SourceFile): DeclaredTest[] {
  const found = [...text.matchAll(declaration)];
  let group = "";
  return found.flatMap(({ index, 3: written = "" }, at) => {
    const title = written.replaceAll(/\\(.)/g, "$1");
    if (isGroup(text, index)) {
      group = title;
      return [];
    }
    return [{ title, group, body: text.slice(index, found[at + 1]?.index ?? text.length) }];
  });
}

/** A test that awaits and expects nothing cannot fail. */
export function looksAtSomething({ body }: DeclaredTest): boolean {
  return /\bawait\b|expect|assert/.test(body);
}

/** Whether the file has tests that never run, or keep others from running. */
export function isSkipped({ text }: SourceFile): boolean {
  return /\b(?:describe|test|it)\.(?:skip|todo|only)\b/.test(text);
}

/** By the word with which the line begins on which the declaration stands. */
function isGroup(text: string, index: number): boolean {
  const line = text.slice(text.lastIndexOf("\n", index) + 1, index + "describe".length);
  return /\bdescribe\b/.test(line);
}
