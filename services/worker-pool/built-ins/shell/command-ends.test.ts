import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Builtin } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { isAlive } from "../../../../test/harness/processes.ts";
import { openPoolOnBus } from "../../testing/pool-on-bus.ts";
import { type Commands, openCommands } from "../testing/commands.ts";

let commands: Commands;
let inside: string;
const run: Commands["run"] = (...given) => commands.run(...given);

beforeAll(async () => {
  commands = await openCommands();
  inside = commands.inside;
});
afterAll(() => commands[Symbol.asyncDispose]());

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
      /^sleep timed out at the end of its call's time and was ended/,
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
    expect(await run(["printf", "10 bytes are left out"])).not.toHaveProperty("truncated");
    for (const script of ["yes", "yes >&2"])
      expect((await run(["sh", "-c", script])).error).toMatch(/wrote more than 67108864 bytes and was ended/);
    expect((await run(["python3", "-c", "import sys; sys.stdout.buffer.write(b'a\\xff\\xfeb')"])).stdout).toBe(
      "a\ufffd\ufffdb",
    );
  });

  test("WORK-10 commands at one time are bounded; one that finds no place in its time was not started", async () => {
    await using own = await openPoolOnBus(() => ({ TOOLBUS_POOL_CALLS: "2" }));
    const builtinPolicy = { builtin: Builtin.SHELL_EXEC, allowedPaths: [inside], allowedCommands: ["sh", "touch"] };
    const exec = (argv: string[], timeoutMs: number) =>
      own.call({ tool: "shell_exec", args: { argv }, builtinPolicy, timeoutMs });
    const busy = [1, 2].map(() => exec(["sh", "-c", "echo $$ >>busy; sleep 600"], 4_000));
    await until(async () => (await pidsIn("busy")).length === 2);
    await expect(exec(["touch", "started"], 500)).rejects.toThrow(/was not started in time: everything is busy/);
    expect((await exec(["touch", "later"], 60_000)).isError).toBe(false);
    for (const one of await Promise.all(busy)) expect(one.value).toMatch(/timed out/);
    await expect(readFile(join(inside, "started"))).rejects.toThrow(/ENOENT/);
  });

  test("stopping the service ends commands", async () => {
    const own = await openPoolOnBus();
    const builtinPolicy = { builtin: Builtin.SHELL_EXEC, allowedPaths: [inside], allowedCommands: ["sh"] };
    const args = { argv: ["sh", "-c", FAMILY("stopped")] };
    const called = own.call({ tool: "shell_exec", args, builtinPolicy }).catch(() => undefined); // however it ends
    await until(async () => (await pidsIn("stopped")).length >= 4, { timeoutMs: 20_000 });
    await own[Symbol.asyncDispose]();
    await called;
    await allGone("stopped", 4);
  }, 60_000);
});
