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
    expect(suiteIn(directory)).toMatchObject({ url: "", isStopping: false, pid: process.pid });
    {
      using _ = announced.listensAt(url);
      expect(suiteIn(directory)).toMatchObject({ url, isStopping: false, pid: process.pid });
    }
    expect(suiteIn(directory)).toMatchObject({ url: "", isStopping: true, pid: process.pid });
    expect(keyOfSuiteAt("", directory)).toBe(undefined);
  }
  expect(suiteIn(directory)).toBe(undefined);
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
  const module = new URL("key.ts", import.meta.url).href;
  const program = `
    import { announceSuite } from ${JSON.stringify(module)};
    announceSuite(${JSON.stringify(directory)}).listensAt("http://127.0.0.1:1")[Symbol.dispose]();
    process.on("SIGTERM", () => process.exit(9));
    process.stdin.on("end", () => process.exit(0)).resume();
    console.log("stopping");`;
  const suite = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: "pipe" });
  const ended = once(suite, "exit");
  await once(suite.stdout, "data");
  await using down = startCommand(["down", "--directory", directory]);
  const waits = () => down.written.stderr.includes("stops already");
  await until(waits, { timeoutMs: 30_000, what: "the command to wait" });
  suite.stdin.end();
  expect((await ended)[0]).toBe(0);
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
