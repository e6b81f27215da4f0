import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { isLiteral } from "./names.ts";

const hostile = [
  "$(echo done)",
  "`echo done`",
  "a$(echo done)",
  "@s/$HOME",
  "a b",
  "a;b",
  "a\nb",
  "a\tb",
  "~",
  "-x",
  "'a",
  "\u001b[0m",
];
const plain = ["demo", "get_time", "@files/read_file", "@my.files/a-b", "agent-1"];

describe("SEC-5 names that a shell completes", () => {
  test.each(hostile)("%j is not offered", (name) => {
    expect(isLiteral(name)).toBe(false);
  });

  test.each(plain)("%j is, and bash takes it as it is", (name) => {
    expect(isLiteral(name)).toBe(true);
    const words = execFileSync("bash", ["-c", 'compgen -W "$1" -- ""', "bash", name], { encoding: "utf8" });
    expect(words).toBe(`${name}\n`);
  });
});
