// What a confined child reaches, on a machine with bubblewrap; on another one, that the absence is told and refused.

import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../time/until.ts";
import { type ChildProcess, openChildProcess } from "./child-process/child-process.ts";
import type { ChildConfinement } from "./child-process/confinement.ts";
import { openConfinement, tryConfinement } from "./open-confinement.ts";

const canary = `canary-${process.pid}`;
const program = process.env.TOOLBUS_BWRAP;
const config = { mode: "auto", privatePaths: [], readOnlyPaths: [], program } as const;

let directory: string;
let keys: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-confined-"));
  keys = join(directory, "keys");
  await mkdir(join(keys, "of-service"), { recursive: true });
  await mkdir(join(directory, "program"));
  for (const path of ["keys/seed", "keys/of-service/seed", "single-key"])
    await writeFile(join(directory, path), canary);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function openConfined(script: string, more: Partial<ChildConfinement> = {}): Promise<ChildProcess> {
  const possible = await tryConfinement({
    ...config,
    privatePaths: [join(keys, "of-service"), keys, join(directory, "single-key"), join(directory, "not-there")],
    readOnlyPaths: [join(directory, "program")],
  });
  const confinement = possible.kind === "confined" ? { ...possible.confinement, ...more } : undefined;
  return openChildProcess({
    command: "/bin/sh",
    args: ["-c", script],
    cwd: directory,
    confinement,
    terminationGraceMs: 10_000,
    inputGraceMs: 10,
  });
}

/** What it writes to its outputs, to its end. */
async function said(script: string, more: Partial<ChildConfinement> = {}): Promise<string> {
  await using child = await openConfined(script, more);
  const lines = (await Array.fromAsync(child.lines())).join("\n");
  return lines + (await child.exited).stderrTail;
}

const isPossible = (await tryConfinement(config)).kind === "confined";

test("SEC-3 tools are confined wherever users may make namespaces, with nothing installed by hand", () => {
  const may = spawnSync("unshare", ["--user", "--map-root-user", "--pid", "--fork", "true"]).status === 0;
  expect(isPossible).toBe(may);
});

describe(isPossible ? "with bubblewrap" : "without bubblewrap", () => {
  test("SEC-3 WORK-9 a child is confined where that is possible, and what is not possible is told", async () => {
    const warnings: string[] = [];
    const logger = { warn: (_: object, message: string) => void warnings.push(message) } as Parameters<
      typeof openConfinement
    >[1];
    expect((await openConfinement(config, logger)) !== undefined).toBe(isPossible);
    expect(await openConfinement({ ...config, mode: "off" }, logger)).toBeUndefined();
    expect(await openConfinement({ ...config, program: join(directory, "bwrap") }, logger)).toBeUndefined();
    expect(warnings.slice(isPossible ? 0 : 1)).toEqual([
      expect.stringContaining(
        "tools run unconfined, with all rights of this service's user: TOOLBUS_CONFINEMENT is off",
      ),
      expect.stringContaining("bwrap does not work here: it exited with 127"),
    ]);
    const required = openConfinement({ ...config, mode: "required", program: join(directory, "bwrap") }, logger);
    await expect(required).rejects.toMatchObject({ code: "failed_precondition", kind: "unconfined" });
  });

  test("SEC-3 it moves no directory above what is protected, where the next start would find its own", async () => {
    if (!isPossible) return; // it has the rights of its user, as it is told
    const text = await said(`mv ${directory} ${directory}-moved 2>&1; mv keys keys-moved 2>&1; ls; echo end`);
    expect(text.match(/busy/gi)).toHaveLength(2);
    expect(text).toMatch(/^keys$/m);
    const below = { writable: [directory], privatePaths: [join(keys, "of-service")] };
    expect(await said("mv keys keys-moved 2>&1; ls", below)).toMatch(/busy.*^keys$/ims);
  });

  test("SEC-3 it changes neither the program that confines it, nor Node", async () => {
    const own = join(directory, "bwrap");
    const possible = await tryConfinement(config);
    if (possible.kind !== "confined") return;
    const program = `#!/bin/sh\nexec ${possible.confinement.program} "$@"\n`;
    await writeFile(own, program, { mode: 0o755 });
    expect(possible.confinement.readOnlyPaths).toContain(process.execPath);
    const script = `mv ${own} ${own}-old; (echo evil > ${own}); echo end`;
    expect(await said(script, { program: own })).toContain("end");
    expect(await readFile(own, "utf8")).toBe(program);
  });

  test("SEC-3 the settings of the machine are closed to it, root's too", async () => {
    const text = await said("(: >> /proc/sys/kernel/core_pattern) && echo open; echo end");
    if (isPossible) expect(text).not.toMatch(/^open$/m);
  });

  test("SEC-3 it sees no process but its own, and no private file", async () => {
    const text = await said(`cat /proc/[0-9]*/cmdline | tr '\\0' ' '; cat keys/seed keys/*/seed single-key; echo end`);
    expect(text).toContain("end");
    expect(text.includes(canary)).toBe(!isPossible);
    expect(text.includes("vitest")).toBe(!isPossible);
    expect(await said("cat keys/of-service/seed", { visible: [join(keys, "of-service")] })).toContain(canary);
  });

  test.each([0, 1_000])(
    "SEC-3 it has shared memory of its own, through which a service that starts is given secrets: of user %i",
    async (uid) => {
      using _ = vi.spyOn(process, "getuid").mockReturnValue(uid);
      const shared = await mkdtemp("/dev/shm/toolbus-confined-");
      await writeFile(join(shared, "environment.json"), canary);
      const script = `cat /dev/shm/*/environment.json; echo x > ${shared}/left; echo x > /dev/shm/own && cat /dev/shm/own; echo end`;
      for (const more of [{}, { writable: [directory] }]) {
        const text = await said(script, more);
        expect(text).toMatch(/x\nend/);
        expect(text.includes(canary)).toBe(!isPossible);
      }
      expect(await readdir(shared)).toEqual(isPossible ? ["environment.json"] : ["environment.json", "left"]);
      await rm(shared, { recursive: true });
      await rm("/dev/shm/own", { force: true });
    },
  );

  test("SEC-3 it changes nothing where programs of the suite are, and with a list of directories nothing outside of it", async () => {
    const script = `echo x > program/new; echo x > keys/new; echo x > free; echo x > /tmp/${canary}; echo x > /dev/null && echo end`;
    const listed = { writable: [join(directory, "program")] };
    expect(await said(script.replaceAll("program/", "elsewhere/"), listed)).toContain("end");
    const there = () =>
      Promise.all(
        ["program/new", "keys/new", "free"].map((name) =>
          readFile(join(directory, name)).then(
            () => name,
            () => "",
          ),
        ),
      );
    expect(await there()).toEqual(isPossible ? ["", "", ""] : ["", "keys/new", "free"]);
    await said(script);
    expect(await there()).toEqual(isPossible ? ["", "", "free"] : ["program/new", "keys/new", "free"]);
    await rm(`/tmp/${canary}`, { force: true });
  });

  test("SEC-3 WORK-9 it has SIGTERM to end by, and its own code, signal and last words", async () => {
    const polite = await openConfined("trap 'echo bye >&2; exit 7' TERM; echo up; while :; do sleep 0.01; done");
    await polite.lines()[Symbol.asyncIterator]().next();
    expect(await polite.close()).toMatchObject({ code: 7, stderrTail: expect.stringContaining("bye") });
    expect(await (await openConfined("kill -9 $$")).exited).toMatchObject({ code: null, signal: "SIGKILL" });
    expect(await (await openConfined("exit 3")).exited).toMatchObject({ code: 3, signal: null });
  });

  test("SEC-3 WORK-9 nothing of it is left when it is killed, or ends", async () => {
    for (const end of ["sleep 600", "exit 0"]) {
      const marker = String(600_000 + Math.floor(performance.now()));
      const child = await openConfined(`${isPossible ? "setsid" : ""} sleep ${marker} & echo up; ${end}`);
      await child.lines()[Symbol.asyncIterator]().next();
      await child.kill();
      await until(async () => !(await commandLines()).some((line) => line.includes(`sleep\0${marker}`)), {
        what: "the grandchild to be gone",
      });
    }
  });
});

async function commandLines(): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
}
