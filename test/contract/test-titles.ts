import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../architecture/source-files.ts";

/** A test as it is declared: its title as it is written, that of the group in which it stands, and what it does. */
export interface DeclaredTest {
  readonly file: string;
  readonly title: string;
  readonly group: string;
  readonly body: string;
}

interface TestFile {
  readonly path: string;
  readonly text: string;
}

export function readTestFile(path: string): TestFile {
  return { path, text: readFileSync(join(projectRoot, path), "utf8") };
}

/** `test("…", …)`, `it("…", …)`, `describe("…", …)`, and the second bracket of their `.each(…)("…", …)`. */
const declaration =
  /(\b(?:test|it|describe)|\)|\]|`)\(\s*(["`])((?:(?!\2)[^\n\\]|\\.)+)\2,\s*(?:\{[^}]*\},\s*)?(?:async\s*)?\(/g;

/** `def test_…(self):` of a unittest, and its class. */
const pythonDeclaration = /^(?:class (\w+)\(|\s+(?:async )?def (test_\w+)\()/gm;

/** The checks of `npm run check` and the clients of `examples/clients`, which CI runs as it does the tests. */
const checkDeclaration = /\bname: "([^"]+)"/g;

export function declaredTests(file: TestFile): DeclaredTest[] {
  if (file.path.endsWith(".py")) return declaredInPython(file);
  if (!file.path.endsWith(".test.ts")) return declaredChecks(file);
  const { path, text } = file;
  const found = [...text.matchAll(declaration)];
  let group = "";
  return found.flatMap(({ index, 3: written = "" }, at) => {
    const title = written.replaceAll(/\\(.)/g, "$1");
    if (isGroup(text, index)) {
      group = title;
      return [];
    }
    return [{ file: path, title, group, body: text.slice(index, found[at + 1]?.index ?? text.length) }];
  });
}

function declaredInPython({ path, text }: TestFile): DeclaredTest[] {
  const found = [...text.matchAll(pythonDeclaration)];
  let group = "";
  return found.flatMap(({ index, 1: className, 2: title }, at) => {
    if (className !== undefined) group = className;
    if (title === undefined) return [];
    return [{ file: path, title, group, body: text.slice(index, found[at + 1]?.index ?? text.length) }];
  });
}

function declaredChecks({ path, text }: TestFile): DeclaredTest[] {
  return [...text.matchAll(checkDeclaration)].map(({ 1: title = "" }) => ({
    file: path,
    title,
    group: "",
    body: "run",
  }));
}

/** A test that neither expects anything nor waits for a condition cannot fail; what is run as a whole tells its faults. */
export function looksAtSomething({ body }: DeclaredTest): boolean {
  return /\bawait\b|expect|assert|^run$/.test(body);
}

/** Whether the file has tests that never run, run under a condition, or keep others from running. */
export function isSkipped({ path, text }: TestFile): boolean {
  if (path.endsWith(".py")) return /@unittest\.(?:skip|expectedFailure)|\bskipTest\(|\bSkipTest\b/.test(text);
  return /\b(?:describe|test|it)(?:\.\w+)*\.(?:skip|skipIf|runIf|todo|only|fails)\b|\bcontext\.skip\(/.test(text);
}

/** By the word with which the line begins on which the declaration stands. */
function isGroup(text: string, index: number): boolean {
  const line = text.slice(text.lastIndexOf("\n", index) + 1, index + "describe".length);
  return /\bdescribe\b/.test(line);
}
