import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ALLOWED, type Commands, openCommands } from "../testing/commands.ts";

let commands: Commands;
let inside: string;
const run: Commands["run"] = (...given) => commands.run(...given);

beforeAll(async () => {
  commands = await openCommands();
  inside = commands.inside;
});
afterAll(() => commands[Symbol.asyncDispose]());

const NOT_ALLOWED = /is not one of the allowed commands/;

/** What is given as argv, under which list, and what it is answered. */
const REFUSED: [string, string[], string[], RegExp][] = [
  ["a command that is not listed", ["rm", "-rf", "/"], ALLOWED, NOT_ALLOWED],
  ["an empty list", ["cat"], [], NOT_ALLOWED],
  ["an empty name", [""], ALLOWED, NOT_ALLOWED],
  ["the path of a listed name", ["/bin/cat"], ALLOWED, NOT_ALLOWED],
  ["a listed name by a relative path", ["./cat"], ALLOWED, NOT_ALLOWED],
  ["a listed name in a directory", ["sub/cat"], ALLOWED, NOT_ALLOWED],
  ["other case", ["CAT"], ALLOWED, NOT_ALLOWED],
  ["a blank before it", [" cat"], ALLOWED, NOT_ALLOWED],
  ["a blank behind it", ["cat "], ALLOWED, NOT_ALLOWED],
  ["a newline behind it", ["cat\n"], ALLOWED, NOT_ALLOWED],
  ["NUL behind it", ["cat\0"], ALLOWED, NOT_ALLOWED],
  ["a whole line", ["cat /etc/passwd"], ALLOWED, NOT_ALLOWED],
  ["a second command", ["cat;id"], ALLOWED, NOT_ALLOWED],
  ["a substitution", ["$(cat)"], ALLOWED, NOT_ALLOWED],
  ["a variable", ["$SHELL"], ALLOWED, NOT_ALLOWED],
  ["an assignment", ["PATH=.", "cat"], ALLOWED, NOT_ALLOWED],
  ["a pattern of the list taken as one", ["anything"], ["*"], NOT_ALLOWED],
  ["a list with a relative path", ["./cat"], ["./cat"], /neither a bare name nor an absolute path/],
  ["a list with a path out of nowhere", ["sub/cat"], ["sub/cat"], /neither a bare name nor an absolute path/],
  ["a list with nothing in it", [""], [""], /neither a bare name/],
  ["what is listed and not there", ["no-such-program"], ["no-such-program"], /is not installed/],
  ["a listed path that is a directory", ["/bin"], ["/bin"], /is not installed/],
  ["NUL in an argument", ["printf", "a\0b"], ALLOWED, /NUL/],
  ["more than the kernel takes", ["printf", "a".repeat(200_000)], ALLOWED, /over the limit/],
];

/** Arguments that a shell would read as more than they are. */
const LITERALS = [
  "; id",
  "$(id)",
  "`id`",
  "a\nid",
  "a' 'b",
  'a" "b',
  "| id",
  "&& id",
  "> /tmp/x",
  "*",
  "~",
  "$HOME",
  "$" + "{PATH}",
  "\\",
  "-",
  "--",
  "ä😀",
  "",
  "#",
];

describe("ORCH-9 shell_exec runs what the list names, letter by letter", () => {
  test.each(REFUSED)("%s is refused", async (_, argv, allowed, words) => {
    expect((await run(argv, { allowed })).error).toMatch(words);
  });

  test("an argument is one argument, whatever is in it", async () => {
    const { stdout, exitCode } = await run(["printf", "%s\\0", ...LITERALS]);
    expect(stdout?.split("\0").slice(0, -1)).toEqual(LITERALS);
    expect(exitCode).toBe(0);
  });

  test("a name is never looked for where the command runs", async () => {
    expect((await run(["printf", "real"], { args: { cwd: "sub" } })).stdout).toBe("real");
    expect((await run(["cat"], { args: { cwd: "sub", stdin: "real" } })).stdout).toBe("real");
    expect((await run([join(inside, "cat")], { allowed: [join(inside, "cat")] })).stdout).toBe("hijacked\n");
  });

  test("the environment is bare: nothing of the service's, nothing from the model", async () => {
    const { stdout = "" } = await run(["env"]);
    const names = stdout
      .trim()
      .split("\n")
      .map((line) => line.split("=")[0]);
    expect(
      names.filter((name) => !["PATH", "LANG", "TOOLBUS_CHILD", "PWD", "OLDPWD", "_"].includes(name ?? "")),
    ).toEqual([]);
    expect(stdout).toContain("PATH=/usr/local/bin:/usr/bin:/bin\n");
    expect((await run(["env"], { args: { env: { LD_PRELOAD: "x" } } })).error).toMatch(/env/);
  });

  test("it runs below the allowed directories, or in an empty one of its own", async () => {
    expect((await run(["pwd"])).stdout).toBe(`${inside}\n`);
    expect((await run(["pwd"], { args: { cwd: "sub/../sub" } })).stdout).toBe(`${inside}/sub\n`);
    for (const cwd of ["/etc", "..", "etc-link", "/proc/self/root", "sub/../../.."])
      expect((await run(["pwd"], { args: { cwd } })).error).toMatch(/is not below the allowed directories/);
    expect((await run(["pwd"], { args: { cwd: "cat" } })).error).toMatch(/is not a directory/);
    expect((await run(["pwd"], { args: { cwd: "/" }, paths: [] })).error).toMatch(/allows no directory/);
    const own = await run(["sh", "-c", "pwd; ls -A; touch x"], { paths: [] });
    expect(own.stdout).toMatch(/^\/.*toolbus-command-\w+\n$/);
    expect((await run(["sh", "-c", `ls -d ${own.stdout?.trim()}`], { paths: [] })).exitCode).not.toBe(0);
  });

  test("an exit code is an answer, with what was written to either side", async () => {
    expect(await run(["false"])).toMatchObject({ exitCode: 1, error: "" });
    expect(await run(["sh", "-c", "echo out; echo err >&2; exit 7"])).toMatchObject({
      exitCode: 7,
      stdout: "out\n",
      stderr: "err\n",
    });
    expect(await run(["sh", "-c", "kill -9 $$"])).toMatchObject({ exitCode: null, signal: "SIGKILL" });
  });

  test("stdin is what was given, and ends: a command that waits for more does not wait", async () => {
    expect((await run(["cat"])).stdout).toBe("");
    expect((await run(["wc", "-c"], { args: { stdin: "x".repeat(500_000) } })).stdout?.trim()).toBe("500000");
    expect((await run(["false"], { args: { stdin: "x".repeat(500_000) } })).exitCode).toBe(1);
  });
});
