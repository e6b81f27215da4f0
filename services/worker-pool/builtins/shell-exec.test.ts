import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import { openPoolOnBus, type PoolOnBus } from "../testing/pool-on-bus.ts";

let pool: PoolOnBus;
let inside: string;

beforeAll(async () => {
  pool = await openPoolOnBus(() => ({ TOOLBUS_SECRET_KEY: "hush-hush", LD_PRELOAD: "" }));
  inside = join(pool.directory, "inside");
  await mkdir(join(inside, "sub"), { recursive: true });
  for (const name of ["cat", "printf", "sub/cat"]) {
    await writeFile(join(inside, name), "#!/bin/sh\necho hijacked\n");
    await chmod(join(inside, name), 0o755);
  }
  await symlink("/etc", join(inside, "etc-link"));
});
afterAll(() => pool[Symbol.asyncDispose]());

interface Input {
  allowed?: string[];
  paths?: string[];
  args?: object;
  policyMs?: number;
  timeoutMs?: number;
  signal?: AbortSignal;
}

const ALLOWED = ["printf", "cat", "env", "sleep", "sh", "yes", "pwd", "python3", "wc", "false"];

async function run(
  argv: string[],
  { allowed = ALLOWED, paths = [inside], args = {}, policyMs = 0, ...rest }: Input = {},
) {
  const builtinPolicy = { name: "shell_exec", allowedPaths: paths, allowedCommands: allowed, timeoutMs: policyMs };
  const { timeoutMs, signal } = rest;
  const input = {
    tool: "shell_exec",
    args: { argv, ...args },
    builtinPolicy,
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
  const { value, isError } = await pool.call(input, signal);
  return {
    error: isError ? String(value) : "",
    ...(isError ? {} : (value as { stdout: string; exitCode: number; stderr: string })),
  };
}

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
      names.filter((name) => !["PATH", "LANG", "TOOLBUS_COMMAND", "PWD", "OLDPWD", "_"].includes(name ?? "")),
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

describe("what a command leaves behind, and how long it may take", () => {
  /** The processes whose ids a command wrote to the file. */
  const pidsIn = async (file: string) =>
    (await readFile(join(inside, file), "utf8").catch(() => ""))
      .split(/\s+/)
      .filter((word) => word !== "")
      .map(Number);

  const allGone = (file: string, count: number) =>
    until(
      async () => {
        const pids = await pidsIn(file);
        return pids.length >= count && !pids.some(isAlive);
      },
      { timeoutMs: 20_000, what: `${count} processes to be gone` },
    );

  const FAMILY = (file: string) =>
    `trap '' TERM HUP INT; echo $$ >>${file}; (trap '' TERM; echo x; sh -c 'echo $$ >>${file}; sleep 600') & setsid sh -c 'echo $$ >>${file}; setsid sleep 600 & echo $! >>${file}; wait' & sleep 600`;

  test("ORCH-9 its time over, the whole group is ended, grandchildren and those in sessions of their own too", async () => {
    const { error } = await run(["sh", "-c", FAMILY("timeout")], { policyMs: 1_500 });
    expect(error).toMatch(/^sh timed out after 1500ms and was ended with all that it had started\. stdout: "x\\n"/);
    await allGone("timeout", 4);
  });

  test("the call's own time is kept as well, and the lower of the two counts", async () => {
    expect((await run(["sleep", "600"], { timeoutMs: 700, policyMs: 60_000 })).error).toMatch(
      /timed out after [67]\d\dms/,
    );
    expect((await run(["sleep", "600"], { timeoutMs: 60_000, policyMs: 300 })).error).toMatch(/timed out after 300ms/);
  });

  test("LOOP-15 a caller that leaves ends it", async () => {
    const leaving = new AbortController();
    const called = run(["sh", "-c", FAMILY("left")], { signal: leaving.signal }).catch((error: unknown) =>
      String(error),
    );
    await until(async () => (await pidsIn("left")).length >= 4, { timeoutMs: 20_000 });
    leaving.abort();
    expect(await called).toMatch(/abort|cancel/i);
    await allGone("left", 4);
  });

  test("what it started in the background is ended when it ends, and delays no answer", async () => {
    const script =
      "(echo $$ >>back; exec sleep 600) & setsid sh -c 'echo $$ >>back; exec sleep 600' & while [ $(wc -l <back) -lt 2 ]; do :; done; echo done";
    await writeFile(join(inside, "back"), "");
    expect(await run(["sh", "-c", script])).toMatchObject({ stdout: "done\n", exitCode: 0 });
    await until(async () => !(await pidsIn("back")).slice(1).some(isAlive), { timeoutMs: 20_000 });
  });

  test("output is bounded: begin and end are shown, and one that never stops is ended", async () => {
    const long = await run(["python3", "-c", "print('b' + 'x' * 3_000_000 + 'e')"], {
      args: { maxOutputBytes: 1_000 },
    });
    expect(long).toMatchObject({ truncated: true, exitCode: 0 });
    expect(long.stdout).toMatch(/^bx+\n\[… 2999003 bytes are left out …\]\nx+e\n$/);
    for (const script of ["yes", "yes >&2"])
      expect((await run(["sh", "-c", script])).error).toMatch(/wrote more than 67108864 bytes and was ended/);
    expect((await run(["python3", "-c", "import sys; sys.stdout.buffer.write(b'a\\xff\\xfeb')"])).stdout).toBe(
      "a\ufffd\ufffdb",
    );
  });

  test("WORK-10 commands at one time are bounded; one that finds no place in its time was not started", async () => {
    await using own = await openPoolOnBus(() => ({ TOOLBUS_POOL_CALLS: "2" }));
    const builtinPolicy = { name: "shell_exec", allowedPaths: [inside], allowedCommands: ["sleep", "touch"] };
    const exec = (argv: string[], timeoutMs: number) =>
      own.call({ tool: "shell_exec", args: { argv }, builtinPolicy, timeoutMs });
    const busy = [exec(["sleep", "600"], 4_000), exec(["sleep", "600"], 4_000)];
    await expect(exec(["touch", "started"], 500)).rejects.toThrow(/was not started within \d+ms: everything is busy/);
    expect((await exec(["touch", "later"], 60_000)).isError).toBe(false);
    for (const one of await Promise.all(busy)) expect(one.value).toMatch(/timed out/);
    await expect(readFile(join(inside, "started"))).rejects.toThrow(/ENOENT/);
  });

  test("stopping the service ends commands", async () => {
    const own = await openPoolOnBus();
    const builtinPolicy = { name: "shell_exec", allowedPaths: [inside], allowedCommands: ["sh"] };
    const args = { argv: ["sh", "-c", FAMILY("stopped")] };
    const called = own.call({ tool: "shell_exec", args, builtinPolicy }).catch(() => undefined); // however it ends
    await until(async () => (await pidsIn("stopped")).length >= 4, { timeoutMs: 20_000 });
    await own[Symbol.asyncDispose]();
    await called;
    await allGone("stopped", 4);
  }, 60_000);
});
