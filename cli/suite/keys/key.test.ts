import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { identityOfProcess } from "#runtime/bus/nats-server/process-identity.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { runCommand, startCommand } from "../../../test/harness/commands/command.ts";
import { announceSuite, isOwn, keyOfSuiteAt, openKey, openLoginKey, suiteIn } from "./key.ts";

const url = "http://127.0.0.1:7480";
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-test-key-"));
});
afterEach(() => rm(directory, { recursive: true }));

/** What a repository may bring as `.toolbus`, with what can be known of a process from elsewhere. */
async function bring(url: string, mode = 0o600): Promise<void> {
  await mkdir(join(directory, "keys"));
  await writeFile(join(directory, "keys", "local"), "tb_theirs\n");
  await writeFile(join(directory, "suite.json"), JSON.stringify({ url, ...identityOfProcess(process.pid) }), { mode });
}

test("SEC-1 a suite that runs is found by its directory, and not once it has ended; it has an address while it listens", () => {
  {
    using announced = announceSuite(directory);
    expect(suiteIn(directory)).toMatchObject({ url: "", state: "starting", pid: process.pid });
    {
      using _ = announced.isUp(url);
      expect(suiteIn(directory)).toMatchObject({ url, state: "up", pid: process.pid });
    }
    expect(suiteIn(directory)).toMatchObject({ url: "", state: "stopping", pid: process.pid });
    expect(keyOfSuiteAt("", directory)).toBe(undefined);
  }
  expect(suiteIn(directory)).toBe(undefined);
});

test("PROD-1 a suite that is told to stop is stopping from then on, whether it was starting, or up without a gateway", () => {
  for (const isUp of [false, true]) {
    const stopping = new AbortController();
    using announced = announceSuite(directory, stopping.signal);
    if (isUp) announced.isUp("");
    expect(suiteIn(directory)).toMatchObject({ state: isUp ? "up" : "starting" });
    stopping.abort();
    expect(suiteIn(directory)).toMatchObject({ state: "stopping" });
    announced.isUp(url); // it was ready in the same moment
    expect(suiteIn(directory)).toMatchObject({ url: "", state: "stopping" });
  }
});

test("a suite that is told to stop after its end has no record", () => {
  const stopping = new AbortController();
  announceSuite(directory, stopping.signal)[Symbol.dispose]();
  stopping.abort();
  expect(suiteIn(directory)).toBe(undefined);
});

test("a suite whose record cannot be written any more stops all the same", async () => {
  const gone = join(directory, "gone");
  await mkdir(gone);
  const stopping = new AbortController();
  using announced = announceSuite(gone, stopping.signal);
  using _ = announced.isUp(url);
  await rm(gone, { recursive: true });
  const thrown: unknown[] = [];
  const told = (error: unknown) => void thrown.push(error);
  process.on("uncaughtException", told);
  stopping.abort();
  await delay(1); // what a listener throws is told in the next turn
  process.off("uncaughtException", told);
  expect(thrown).toEqual([]);
});

test("a record that cannot be written leaves nothing behind", async () => {
  await mkdir(join(directory, "suite.json"));
  expect(() => announceSuite(directory)).toThrow(/suite\.json/);
  expect(await readdir(directory)).toEqual(["suite.json"]);
});

/** Runs a program that knows this module and the directory, until its standard input ends; resolves when it has said something. */
async function startProgram(text: string) {
  const module = new URL("key.ts", import.meta.url).href;
  const program = `
    import { writeFileSync } from "node:fs";
    import { announceSuite, suiteIn } from ${JSON.stringify(module)};
    const directory = ${JSON.stringify(directory)};
    ${text}
    process.stdin.on("end", () => process.exit(0)).resume();
    console.log("ready");`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: "pipe" });
  const ended = once(child, "exit");
  await once(child.stdout, "data");
  return { child, ended, [Symbol.dispose]: () => void child.kill("SIGKILL") };
}

test("PROD-1 of two suites that start at once, the one that gives up leaves the other's record", async () => {
  const stopping = new AbortController();
  const announced = announceSuite(directory, stopping.signal);
  using other = await startProgram("announceSuite(directory).isUp('http://127.0.0.1:1');");
  stopping.abort();
  expect(suiteIn(directory)).toMatchObject({ state: "up", pid: other.child.pid });
  announced[Symbol.dispose]();
  expect(suiteIn(directory)).toMatchObject({ state: "up", pid: other.child.pid });
});

test("PROD-1 `down` stops a suite of the last release, whose record says nothing of its state", async () => {
  using suite = await startProgram(`
    announceSuite(directory);
    const { url: _url, state: _state, ...rest } = suiteIn(directory);
    writeFileSync(directory + "/suite.json", JSON.stringify({ url: "http://127.0.0.1:1", ...rest }));
    process.on("SIGTERM", () => process.exit(9));`);
  expect(suiteIn(directory)).toMatchObject({ state: "up", pid: suite.child.pid });
  const down = await runCommand(["down", "--directory", directory]);
  expect(down).toMatchObject({ exitCode: 0, stdout: "the suite at http://127.0.0.1:1 is down\n" });
  expect((await suite.ended)[0]).toBe(9);
});

test("SEC-1 a key whose file the machine lost the text of is made again, and one that stands is kept", async () => {
  await mkdir(join(directory, "keys"));
  for (const name of ["local", "mcp-logins"]) await writeFile(join(directory, "keys", name), "", { mode: 0o600 });
  const made = openKey(directory);
  expect(made).toMatchObject({ key: expect.stringMatching(/^tb_.{43}$/), isNew: true });
  expect(openKey(directory)).toEqual({ ...made, isNew: false });
  expect(statSync(made.path).mode & 0o777).toBe(0o600);
  expect(Buffer.from(openLoginKey(directory), "base64")).toHaveLength(32);
  expect(await readdir(join(directory, "keys"))).toEqual(["local", "mcp-logins"]);
});

test("PROD-1 `down` waits for a suite that stops already, and does not interrupt what it finishes", async () => {
  using suite = await startProgram(`
    const stopping = new AbortController();
    announceSuite(directory, stopping.signal);
    stopping.abort();
    process.on("SIGTERM", () => process.exit(9));`);
  await using down = startCommand(["down", "--directory", directory]);
  const waits = () => down.written.stderr.includes("stops already");
  await until(waits, { timeoutMs: 30_000, what: "the command to wait" });
  suite.child.stdin.end();
  expect((await suite.ended)[0]).toBe(0);
  expect(await down.ended).toMatchObject({ exitCode: 0, stdout: `the suite of ${directory} is down\n` });
});

test("SEC-1 a record that was not written on this machine since it started names no suite, whatever process it names", async () => {
  await bring(url);
  expect(suiteIn(directory)).toBe(undefined);
  expect(keyOfSuiteAt(url, directory)).toBe(undefined);
});

test.each([0o640, 0o604, 0o620, 0o602])(
  "SEC-1 a record that others can read or write (mode %o) names no suite",
  async (mode) => {
    using _ = announceSuite(directory);
    await chmod(join(directory, "suite.json"), mode);
    expect(suiteIn(directory)).toBe(undefined);
  },
);

test("SEC-1 a record of another user is not this user's own", () => {
  using _ = announceSuite(directory);
  const stats = statSync(join(directory, "suite.json"));
  expect(isOwn(stats)).toBe(true);
  expect(isOwn(Object.assign(stats, { uid: stats.uid + 1 }))).toBe(false);
});

test("SEC-1 a command sends no key to the address that a cloned repository names", async () => {
  const keys: unknown[] = [];
  await using stranger = createServer().listen(0, "127.0.0.1");
  stranger.on("stream", (stream, { authorization }) => {
    keys.push(authorization);
    stream.respond({ ":status": 404 }, { endStream: true });
  });
  await once(stranger, "listening");
  await bring(`http://127.0.0.1:${(stranger.address() as AddressInfo).port}`);
  const env = { TOOLBUS_DIRECTORY: directory, TOOLBUS_API_KEY: "tb_of-the-user" };
  await runCommand(["agents"], { env });
  expect(keys).toEqual([]);
});
