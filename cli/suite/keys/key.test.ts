import { once } from "node:events";
import { statSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { identityOfProcess } from "#runtime/bus/nats-server/process-identity.ts";
import { runCommand } from "../../../test/harness/commands/command.ts";
import { announceSuite, isOwn, keyOfSuiteAt, suiteIn } from "./key.ts";

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

test("SEC-1 a suite that runs is found by its directory, and not once it has ended", async () => {
  {
    using _ = announceSuite(directory, url);
    expect(suiteIn(directory)).toMatchObject({ url, pid: process.pid });
  }
  expect(suiteIn(directory)).toBe(undefined);
});

test("SEC-1 a record that was not written on this machine since it started names no suite, whatever process it names", async () => {
  await bring(url);
  expect(suiteIn(directory)).toBe(undefined);
  expect(keyOfSuiteAt(url, directory)).toBe(undefined);
});

test.each([0o640, 0o604, 0o620, 0o602])(
  "SEC-1 a record that others can read or write (mode %o) names no suite",
  async (mode) => {
    using _ = announceSuite(directory, url);
    await chmod(join(directory, "suite.json"), mode);
    expect(suiteIn(directory)).toBe(undefined);
  },
);

test("SEC-1 a record of another user is not this user's own", () => {
  using _ = announceSuite(directory, url);
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
