import { Builtin } from "#gen/toolbus/tool/v1/tool_pb.ts";
// Somebody swaps what a path means, as fast as the machine allows, while tools use the path.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPoolOnBus, type PoolOnBus } from "../../testing/pool-on-bus.ts";

const SECRET = "what nobody may read";
const TRIES = 2_000;

let pool: PoolOnBus;
let inside: string;
let outside: string;

beforeAll(async () => {
  pool = await openPoolOnBus();
  inside = join(pool.directory, "inside");
  outside = join(pool.directory, "outside");
  for (const directory of [inside, outside, join(inside, "real")]) await mkdir(directory);
  await writeFile(join(outside, "file.txt"), SECRET);
  await writeFile(join(inside, "real", "file.txt"), "good");
  await writeFile(join(inside, "real", "where.txt"), "good");
  await writeFile(join(outside, "where.txt"), SECRET);
});
afterAll(() => pool[Symbol.asyncDispose]());

const LINKS = `
import os, sys
name, meanings = sys.argv[1], sys.argv[2:]
print("ready", flush=True)
parent = os.getppid()
while os.getppid() == parent:  # it ends with the test, also with one that is killed
    for meaning in meanings:
        os.symlink(meaning, name + ".next")
        os.rename(name + ".next", name)
`;

/** A directory that is itself moved away, with a link in its place. */
const DIRECTORY = `
import os, shutil, sys, time
name, outside = sys.argv[1:]
print("ready", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    os.rename(name, name + ".away")
    while not os.path.islink(name):
        try:
            os.symlink(outside, name)
        except FileExistsError:  # a writer has made the directory anew, which it may
            shutil.rmtree(name, ignore_errors=True)
    time.sleep(0.0002)
    os.unlink(name)
    while os.path.exists(name + ".away"):
        try:
            os.rename(name + ".away", name)
        except OSError:  # likewise
            shutil.rmtree(name, ignore_errors=True)
    time.sleep(0.0002)
`;

/** Changes what `name` means, as the program does it, until it is disposed. */
async function openSwapper(name: string, meanings: readonly string[], program = LINKS): Promise<AsyncDisposable> {
  const child = spawn("python3", ["-c", program, name, ...meanings], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return {
    async [Symbol.asyncDispose]() {
      expect(child.exitCode, "the swapper is still at work").toBeNull();
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    },
  };
}

const call = (tool: string, args: object) =>
  pool.call({
    tool,
    args,
    builtinPolicy: { builtin: Builtin[tool.toUpperCase() as keyof typeof Builtin], allowedPaths: [inside] },
  });

/** Many calls, some at a time; how often each kind of answer came. */
async function storm(one: (index: number) => Promise<string>): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  let next = 0;
  const work = async () => {
    while (next < TRIES) {
      const answer = await one(next++);
      counts.set(answer, (counts.get(answer) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  return counts;
}

const kindOfRead = ({ value, isError }: { value: unknown; isError: boolean }) =>
  isError ? String(value).replace(/^".*?"/, "it") : (value as { content: string }).content;

test("ORCH-9 a link that is swapped between inside and outside never lets a reader out", async () => {
  const path = join(inside, "file-link");
  await using _ = await openSwapper(path, ["real/file.txt", join(outside, "file.txt")]);
  const counts = await storm(async () => kindOfRead(await call("fs_read", { path })));
  expect([...counts.keys()].filter((key) => key.includes(SECRET))).toEqual([]);
  expect(counts.get("good")).toBeGreaterThan(TRIES / 20);
  expect([...counts].some(([key, count]) => key.includes("not below") && count > TRIES / 20)).toBe(true);
}, 120_000);

test("ORCH-9 nor does a directory on the way that is swapped", async () => {
  const path = join(inside, "directory-link");
  await using _ = await openSwapper(path, ["real", outside]);
  const counts = await storm(async () => kindOfRead(await call("fs_read", { path: `${path}/file.txt` })));
  expect([...counts.keys()].filter((key) => key.includes(SECRET))).toEqual([]);
  expect(counts.get("good")).toBeGreaterThan(TRIES / 20);
  expect([...counts].some(([key, count]) => key.includes("not below") && count > TRIES / 20)).toBe(true);
}, 120_000);

test("ORCH-9 nor does it let a writer change or make anything outside, in any mode", async () => {
  const path = join(inside, "write-link");
  await using _ = await openSwapper(path, ["real", outside]);
  const counts = await storm(async (index) => {
    const mode = ["replace", "append", "create"][index % 3];
    const name = index % 2 === 0 ? "file.txt" : `made-${index}/x.txt`;
    const args = { path: `${path}/${name}`, content: "x", mode, createDirectories: true };
    return (await call("fs_write", args)).isError ? "refused" : "written";
  });
  expect(counts.get("written")).toBeGreaterThan(TRIES / 20);
  expect(counts.get("refused")).toBeGreaterThan(TRIES / 20);
  expect(await readdir(outside)).toEqual(["file.txt", "where.txt"]);
  expect(await readFile(join(outside, "file.txt"), "utf8")).toBe(SECRET);
  const left = await readdir(join(inside, "real"));
  expect(left.filter((name) => name.startsWith(".toolbus-"))).toEqual([]);
}, 120_000);

test("ORCH-9 nor does a directory that is moved away, with a link out in its place", async () => {
  const path = join(inside, "moving");
  await mkdir(path);
  await using _ = await openSwapper(path, [outside], DIRECTORY);
  const counts = await storm(async (index) => {
    const args = { path: `${path}/new-${index}/x.txt`, content: "x", createDirectories: true };
    const flat = { path: `${path}/flat-${index}.txt`, content: "x" };
    return (await call("fs_write", index % 2 === 0 ? args : flat)).isError ? "refused" : "written";
  });
  expect(counts.get("written")).toBeGreaterThan(TRIES / 50);
  expect(counts.get("refused")).toBeGreaterThan(TRIES / 50);
  expect((await readdir(outside)).toSorted()).toEqual(["file.txt", "where.txt"]);
}, 120_000);

test("ORCH-9 nor does it let a command run outside", async () => {
  const path = join(inside, "cwd-link");
  await using _ = await openSwapper(path, ["real", outside]);
  const builtinPolicy = { builtin: Builtin.SHELL_EXEC, allowedPaths: [inside], allowedCommands: ["cat"] };
  const seen = new Set<string>();
  for (let count = 0; count < 60; count += 1) {
    const { value, isError } = await pool.call({
      tool: "shell_exec",
      args: { argv: ["cat", "where.txt"], cwd: path },
      builtinPolicy,
    });
    seen.add(isError ? "refused" : (value as { stdout: string }).stdout);
  }
  expect(seen).toEqual(new Set(["good", "refused"]));
}, 120_000);
