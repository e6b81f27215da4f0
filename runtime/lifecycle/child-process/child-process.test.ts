import { execFile, type ChildProcess as SpawnedProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { getPriority } from "node:os";
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { until } from "../../time/until.ts";
import { type ChildProcess, type ChildProcessOptions, openChildProcess } from "./child-process.ts";
import { textFromExit } from "./exit.ts";
import { createInput } from "./input.ts";

function openShell(script: string, options: Partial<ChildProcessOptions> = {}): Promise<ChildProcess> {
  return openChildProcess({ command: "sh", args: ["-c", script], ...options });
}

async function linesOf(child: ChildProcess): Promise<string[]> {
  return Array.fromAsync(child.lines());
}

/** A zombie counts as gone: who reaps orphans is not ours to say. */
async function isAlive(pid: number): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    return !/^\d+ \(.*\) Z/s.test(stat);
  } catch {
    return false; // no such process
  }
}

async function untilGone(pid: number): Promise<void> {
  await until(async () => !(await isAlive(pid)), { what: `process ${pid} to be gone` });
}

describe("a child process", () => {
  test("answers line by line, and closing ends its stdin first", async () => {
    await using child = await openChildProcess({ command: "cat" });
    const lines = child.lines()[Symbol.asyncIterator]();
    await child.write("one\ntwo\r\n");
    expect((await lines.next()).value).toBe("one");
    expect((await lines.next()).value).toBe("two");
    expect(await child.close()).toEqual({ code: 0, signal: null, stderrTail: "" });
    expect((await lines.next()).done).toBe(true);
  });

  test("what it wrote before its exit can be read after it", async () => {
    const child = await openShell("printf 'a\\nb'; exit 3");
    expect(await child.exited).toMatchObject({ code: 3 });
    expect(await linesOf(child)).toEqual(["a", "b"]);
  });

  test("has the environment and directory that it is given, and no other", async () => {
    const child = await openShell("echo $PWD $MARK $HOME", { env: { PATH: process.env.PATH, MARK: "x" }, cwd: "/" });
    expect(await linesOf(child)).toEqual(["/ x"]);
  });

  test("SEC-5 gives way to the process that started it, with all its threads and children", async () => {
    const child = await openShell("cut -d' ' -f19 /proc/$$/stat; sh -c 'cut -d\" \" -f19 /proc/$$/stat'");
    const nicer = String(Math.min(getPriority() + 5, 19));
    expect(await linesOf(child)).toEqual([nicer, nicer]);
  });

  test("WORK-9 one that ignores the end of stdin gets SIGTERM, and one that ignores that gets SIGKILL", async () => {
    const polite = await openShell("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done", {
      inputGraceMs: 1,
    });
    const politeLines = polite.lines()[Symbol.asyncIterator]();
    await politeLines.next();
    expect(await polite.close()).toMatchObject({ code: 7 });
    expect((await politeLines.next()).value).toBe("bye");

    const deaf = await openShell("trap '' TERM; echo up; while :; do sleep 0.01; done", {
      inputGraceMs: 1,
      terminationGraceMs: 20,
    });
    await deaf.lines()[Symbol.asyncIterator]().next();
    expect(await deaf.close()).toMatchObject({ code: null, signal: "SIGKILL" });
  });

  test("WORK-9 its exit ends its whole group, and a grandchild that holds stdout delays nothing", async () => {
    const child = await openShell("trap '' TERM; sleep 600 & echo $!");
    expect(await child.exited).toMatchObject({ code: 0 });
    const [grandchild] = await linesOf(child);
    await untilGone(Number(grandchild));
  });

  test("ORCH-9 its exit ends what it started in sessions of their own", async () => {
    const child = await openShell("setsid sh -c 'setsid sleep 600 & echo $!; wait' & sleep 600 & read go; exit 0");
    const { value: descendant } = await child.lines()[Symbol.asyncIterator]().next();
    expect(await isAlive(Number(descendant))).toBe(true);
    await child.kill();
    await untilGone(Number(descendant));
  });

  test("a descendant in a session of its own that holds stdout keeps neither its exit nor its lines from ending", async () => {
    const script = [
      "import os",
      "child = os.fork()",
      "if child == 0: os.setsid(); os.execve('/bin/sleep', ['sleep', '600'], {})", // out of reach, without its mark
      "print(child, flush=True)",
    ].join("\n");
    const child = await openChildProcess({ command: "python3", args: ["-c", script] });
    const [lines, exit] = await Promise.all([linesOf(child), child.exited]);
    expect(exit.code).toBe(0);
    expect(lines).toHaveLength(1);
    process.kill(Number(lines[0]), "SIGKILL");
  });

  test("WORK-5 stderr is always drained, told line by line, and its end kept for the report", async () => {
    const seen: string[] = [];
    const child = await openShell(
      "i=0; while [ $i -lt 20000 ]; do echo line-$i-of-a-long-story >&2; i=$((i+1)); done; exit 1",
      { onStderrLine: (line) => seen.push(line) },
    );
    const exit = await child.exited;
    expect(seen).toHaveLength(20_000);
    expect(exit.stderrTail.length).toBeLessThanOrEqual(16 * 1024);
    expect(textFromExit(exit)).toMatch(/^exited with 1: .*line-19999-of-a-long-story$/s);
  });

  test("a line of many megabytes passes, and one over the limit is an error that names both sizes", async () => {
    const script = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end";
    const lines = await linesOf(await openShell(script));
    expect(lines.map((line) => line.length)).toEqual([20_000_000, 3]);
    const short = await openShell(script, { maxLineBytes: 1_000 });
    await expect(linesOf(short)).rejects.toThrow(/a line of at least \d+ bytes is over the limit of 1000 bytes/);
    await short.kill();
  });

  test("is written at once what is said to it in one turn", async () => {
    const writes: number[] = [];
    const input = createInput(
      new Writable({ writev: (chunks, done) => done(void writes.push(chunks.length)) }),
      String,
    );
    await Promise.all(["a", "b", "c"].map((text) => input.write(text)));
    await new Promise(setImmediate);
    expect(writes).toEqual([3]);
  });

  test("a writer waits while the child does not read, and is refused when it is gone", async () => {
    const child = await openShell("read go; exec cat >/dev/null");
    const big = Buffer.alloc(1024 * 1024, 0x78);
    let isThrough = false;
    const writing = child.write(big).then(() => {
      isThrough = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isThrough).toBe(false);
    await child.write("\n");
    await writing;
    await child.close();
    await expect(child.write("more")).rejects.toMatchObject({ code: "unavailable", kind: "child_input_closed" });

    const sleeper = await openShell("sleep 600");
    const refused = expect(sleeper.write(big)).rejects.toMatchObject({ code: "unavailable" });
    await sleeper.kill();
    await refused;
  });

  test("an unknown command or directory is refused by name", async () => {
    await expect(openChildProcess({ command: "no-such-program" })).rejects.toMatchObject({
      code: "not_found",
      message: "the command no-such-program is not on the PATH",
    });
    await expect(openChildProcess({ command: "./nothing" })).rejects.toThrow("is not an executable file");
    await expect(openShell("true", { cwd: "/no/such/place" })).rejects.toThrow("/no/such/place does not exist");
  });

  test("is closed by its signal", async () => {
    const controller = new AbortController();
    const child = await openShell("exec cat", { signal: controller.signal });
    controller.abort();
    expect(await child.exited).toMatchObject({ code: 0 });
  });

  test("WORK-10 its memory can be limited", async () => {
    const script = "print(len(bytearray(300_000_000)))";
    const child = await openChildProcess({
      command: "python3",
      args: ["-S", "-E", "-c", script],
      limits: { memoryBytes: 200_000_000 },
    });
    const exit = await child.exited;
    expect(exit.code).not.toBe(0);
    expect(exit.stderrTail).toContain("MemoryError");
  });
});

describe("SIGKILL of the parent", () => {
  async function openFamily(): Promise<{ parent: SpawnedProcess; family: number[] }> {
    const fixture = fileURLToPath(new URL("testing/parent.ts", import.meta.url));
    const parent = spawn(process.execPath, [fixture], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    parent.stdout.on("data", (chunk) => {
      output += chunk;
    });
    const pids = await until(() => {
      const found = [...output.matchAll(/(\w+) (\d+)\n/g)];
      return found.length === 3 && new Map(found.map(([, name, pid]) => [name, Number(pid)]));
    });
    const family = [...pids.values()];
    expect(await Promise.all(family.map(isAlive))).toEqual([true, true, true]);
    return { parent, family };
  }

  async function watchdogOf(parent: SpawnedProcess): Promise<number | undefined> {
    const found = await promisify(execFile)("pgrep", ["-P", String(parent.pid), "-f", "groups="]).catch(
      () => undefined,
    );
    return found && Number(found.stdout);
  }

  test("WORK-9 leaves nothing behind, not even a grandchild that ignores SIGTERM, or one in a session of its own", async () => {
    const { parent, family } = await openFamily();
    parent.kill("SIGKILL");
    await Promise.all(family.map(untilGone));
  });

  test("WORK-9 leaves nothing behind when the watchdog had been killed before", async () => {
    const { parent, family } = await openFamily();
    const first = await watchdogOf(parent);
    process.kill(first!, "SIGKILL");
    await until(async () => ((await watchdogOf(parent)) ?? first) !== first, { what: "another watchdog" });
    parent.kill("SIGKILL");
    await Promise.all(family.map(untilGone));
  });
});
