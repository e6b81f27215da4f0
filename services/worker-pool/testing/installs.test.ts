import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WorkerState } from "#gen/toolbus/worker/v1/worker_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { HEAD, openTestWorkers, uvCache } from "./workers.ts";

const execFileAsync = promisify(execFile);

const FILES = { "tool.py": `${HEAD}def f(): return 1\n` };

let directory: string;

/** The real uv, whose `sync` takes as long as the test wants: it notes that it began, then waits for a file. */
async function slowUv(words = ":"): Promise<{ uv: string; begun: () => Promise<number>; letGo: () => Promise<void> }> {
  const folder = await mkdtemp(join(directory, "uv-"));
  const uv = join(folder, "uv");
  const script = `#!/bin/sh
if [ "$1" = sync ]; then
  echo x >> ${folder}/begun
  ${words}
  while [ ! -e ${folder}/go ]; do sleep 0.02; done
fi
exec ${process.env.TOOLBUS_UV} "$@"
`;
  await writeFile(uv, script);
  await chmod(uv, 0o755);
  const begun = async () => (await readFile(join(folder, "begun"), "utf8").catch(() => "")).length / 2;
  return { uv, begun, letGo: () => writeFile(join(folder, "go"), "") };
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-slow-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail("the call succeeded"),
    (error) => failureFromConnectError(ConnectError.from(error)),
  );

test("WORK-3 installing is not counted as call time, and happens once for all who wait", async () => {
  const { uv, begun, letGo } = await slowUv();
  const callMs = 300;
  await using workers = await openTestWorkers(FILES, { TOOLBUS_UV: uv, TOOLBUS_WORKER_CALL_TIMEOUT: String(callMs) });
  const calls = Promise.all([workers.call("tool.f"), workers.call("tool.f"), workers.call("tool.f")]);
  await until(async () => (await workers.service.listWorkers({})).workers[0]?.state === WorkerState.STARTING);
  await until(async () => (await begun()) > 0);
  await delay(callMs); // a timer that began after the calls' own has run out: so would they have, if they ran
  await letGo();
  expect((await calls).map(({ result }) => result)).toEqual([1, 1, 1]);
  expect(await begun()).toBe(1);
}, 60_000);

test("WORK-3 installing has its own timeout, and is tried again after a moment", async () => {
  const { uv, begun, letGo } = await slowUv();
  const environment = { TOOLBUS_WORKER_INSTALL_TIMEOUT: "4s", TOOLBUS_WORKER_BACKOFF: "1" };
  await using workers = await openTestWorkers(FILES, { TOOLBUS_UV: uv, ...environment });
  const failure = await failureOf(workers.call("tool.f"));
  expect(failure).toMatchObject({ code: "failed_precondition", reason: "WORKER_INSTALL_FAILED" });
  expect(failure.message).toContain("not done after 4000 ms");
  await letGo();
  await until(async () => (await workers.call("tool.f").catch(() => undefined))?.result === 1);
  expect(await begun()).toBe(2);
}, 60_000);

test("WORK-8 a failed install is remembered for a while with uv's words, and nothing is started meanwhile", async () => {
  const { uv, begun, letGo } = await slowUv();
  await letGo();
  const files = { "missing.py": '# /// script\n# requires-python = ">=3.99"\n# ///\ndef f(): ...\n' };
  await using workers = await openTestWorkers(files, { TOOLBUS_UV: uv, TOOLBUS_WORKER_BACKOFF: "30s" });
  const another = { name: "another", config: { file: "missing.py" } };
  const callFrom = (callId: string) =>
    Array.fromAsync(workers.provider.executeTool({ callId, source: another, tool: "f" }));
  const first = await failureOf(workers.call("missing.f"));
  expect(first.reason).toBe("WORKER_INSTALL_FAILED");
  const attempts = await begun();
  const second = await failureOf(callFrom("another"));
  const third = await failureOf(workers.call("missing.f"));
  for (const { message } of [first, second, third]) expect(message).toMatch(/could not be installed: .*3\.99/s);
  expect(third).toMatchObject({ code: "unavailable", reason: "WORKER_BACKED_OFF" });
  expect(third.message).toMatch(/started again in \d+ ms/);
  expect(await begun()).toBe(attempts);
  const [listed] = (await workers.service.listWorkers({})).workers;
  expect(listed).toMatchObject({ state: WorkerState.BACKED_OFF, reason: expect.stringContaining("3.99") });

  await workers.write("missing.py", FILES["tool.py"]);
  await until(async () => (await workers.call("missing.f").catch(() => undefined))?.result === 1);
}, 60_000);

test("WORK-3 the first call shows what uv does while it installs", async () => {
  const { uv, letGo } = await slowUv("echo 'Downloading thing (16.0MiB)' >&2");
  await using workers = await openTestWorkers(FILES, { TOOLBUS_UV: uv });
  const told: string[] = [];
  for await (const { event } of workers.provider.executeTool({ callId: "c", source: { name: "tool" }, tool: "f" })) {
    if (event.case === "progress") told.push(event.value.message);
    if (told.length === 2) await letGo();
  }
  expect(told.slice(0, 2).sort()).toEqual(["Downloading thing (16.0MiB)", "installing what tool.py depends on"]);
}, 60_000);

test("WORK-3 an offline pool installs from uv's cache alone, and says so when that lacks something", async () => {
  const files = { "tool.py": '# /// script\n# dependencies = ["toolbus-nothing-of-that-name"]\n# ///\ndef f(): ...\n' };
  await using workers = await openTestWorkers({ ...files, "own.py": FILES["tool.py"] }, { UV_OFFLINE: "1" });
  expect((await workers.call("own.f")).result).toBe(1);
  const failure = await failureOf(workers.call("tool.f"));
  expect(failure).toMatchObject({ code: "failed_precondition", reason: "WORKER_INSTALL_FAILED" });
  expect(failure.message).toContain("network was disabled");
}, 60_000);

test("dependencies are installed as soon as a file is seen, unless configured otherwise", async () => {
  const { uv, begun, letGo } = await slowUv();
  await letGo();
  await using workers = await openTestWorkers(FILES, { TOOLBUS_UV: uv, TOOLBUS_WORKER_INSTALL_AHEAD: "true" });
  await until(async () => (await begun()) === 1);
  expect((await workers.service.listWorkers({})).workers).toEqual([]);
  expect((await workers.call("tool.f")).result).toBe(1);
  expect(await begun()).toBe(1);
}, 60_000);

test("WORK-3 an environment that somebody has taken out of uv's cache is made again", async () => {
  await using workers = await openTestWorkers(FILES, { TOOLBUS_WORKER_BACKOFF: "1" });
  expect((await workers.call("tool.f")).result).toBe(1);
  const [worker] = (await workers.service.listWorkers({})).workers;
  await workers.service.stopWorker({ workerId: worker?.id ?? "" });
  await execFileAsync(process.env.TOOLBUS_UV!, ["cache", "prune"], {
    env: { ...process.env, UV_CACHE_DIR: uvCache },
  });
  expect((await workers.call("tool.f")).result).toBe(1);
}, 60_000);

test("WORK-3 an environment that was installed long ago stays while a worker of an older version runs in it", async () => {
  const body = `import os, sys, time
def prefix(): return sys.prefix
def wait(path):
    while not os.path.exists(path): time.sleep(0.02)
    return os.path.exists(sys.executable)
`;
  await using workers = await openTestWorkers({ "old.py": HEAD + body });
  const place = (await workers.call("old.prefix")).result as string;
  const [worker] = (await workers.service.listWorkers({})).workers;
  await workers.service.stopWorker({ workerId: worker?.id ?? "" });
  await utimes(place, 0, 0);
  const path = join(workers.directory, "go on");
  const waiting = workers.call("old.wait", { path });
  await until(async () => (await workers.service.listWorkers({})).workers[0]?.callsInFlight === 1);
  await workers.write("old.py", `# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# ///\n${body}`);
  await until(async () => (await workers.call("old.prefix")).result !== place);
  await writeFile(path, "");
  expect((await waiting).result).toBe(true);
}, 60_000);

test("a pool that stops gives up what is being installed, and tells who waits for it", async () => {
  const { uv, begun } = await slowUv();
  const workers = await openTestWorkers(FILES, { TOOLBUS_UV: uv });
  const failed = failureOf(workers.call("tool.f"));
  await until(async () => (await begun()) === 1);
  await workers[Symbol.asyncDispose]();
  expect(await failed).toMatchObject({ code: "unavailable", message: "the pool stops" });
}, 60_000);

test("SEC-8 a lock file beside a tool file is obeyed: what no longer fits it is refused, until it is locked again", async () => {
  await using workers = await openTestWorkers(FILES);
  const lock = () => execFileAsync(process.env.TOOLBUS_UV!, ["lock", "--script", join(workers.directory, "tool.py")]);
  await lock();
  expect((await workers.call("tool.f")).result).toBe(1);

  await workers.write(
    "tool.py",
    `# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# ///\ndef f(): return 2\n`,
  );
  await until(async () => {
    const failure = await workers.call("tool.f").then(
      () => undefined,
      (error) => failureFromConnectError(error),
    );
    return failure?.reason === "WORKER_INSTALL_FAILED" && failure.message.includes("`uv lock --script tool.py`");
  });

  await lock();
  await until(async () => {
    const called = await workers.call("tool.f").catch(() => undefined); // the directory has not been read again yet
    return called?.result === 2;
  });
}, 60_000);

test("SEC-8 UV_FROZEN refuses a file that nobody has locked", async () => {
  await using workers = await openTestWorkers(FILES, { UV_FROZEN: "1" });
  const failure = await failureOf(workers.call("tool.f"));
  expect(failure).toMatchObject({ code: "failed_precondition", reason: "WORKER_INSTALL_FAILED" });
  expect(failure.message).toContain("run `uv lock --script");
}, 60_000);
