// The key of a suite on one machine: whoever may read its directory may use it, and nobody else.
//
//   DIRECTORY/keys/local   the key, mode 0600; made at the first start
//   DIRECTORY/keys/mcp-logins   the key that encrypts logins at MCP servers
//   DIRECTORY/suite.json   where the suite listens and as which process, for as long as it runs
//
// K1  The command sends the key to the address of a suite that runs, and to no other: when it has ended, another program of
//     another user may listen there.

import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  identityOfProcess,
  isSameProcessAlive,
  type ProcessIdentity,
} from "#runtime/bus/nats-server/process-identity.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";

export interface SuiteKey {
  readonly key: string;
  /** Where it stands. */
  readonly path: string;
  /** Whether it was made just now. */
  readonly isNew: boolean;
}

const record = "suite.json";

/** Throws `failed_precondition` for a key that others may read. */
export function openKey(directory: string): SuiteKey {
  return openKeyFile(directory, "local", () => `tb_${randomBytes(32).toString("base64url")}`);
}

/** What encrypts logins at MCP servers. */
export function openLoginKey(directory: string): string {
  return openKeyFile(directory, "mcp-logins", () => randomBytes(32).toString("base64")).key;
}

function openKeyFile(directory: string, name: string, make: () => string): SuiteKey {
  const path = join(directory, "keys", name);
  if (existsSync(path)) {
    refuseShared(path);
    return { key: readFileSync(path, "utf8").trim(), path, isNew: false };
  }
  mkdirSync(join(directory, "keys"), { recursive: true, mode: 0o700 });
  const key = make();
  writeFileSync(path, `${key}\n`, { mode: 0o600, flag: "wx" });
  return { key, path, isNew: true };
}

function refuseShared(path: string): void {
  if (process.platform === "win32" || (statSync(path).mode & 0o077) === 0) return;
  const text = `others can read the key in ${path}: chmod 600 it, or delete it to get a new one`;
  throw new LocalFailure("failed_precondition", text, { kind: "key_not_private" });
}

/** A suite that runs, and the process that started it. */
export interface RunningSuite extends ProcessIdentity {
  readonly url: string;
}

/** Lets commands find a suite that runs; disposing takes it back. */
export function announceSuite(directory: string, url: string): Disposable {
  const path = join(directory, record);
  const suite: RunningSuite = { url, pid: process.pid, startedAt: "", ...identityOfProcess(process.pid) };
  writeFileSync(path, `${JSON.stringify(suite)}\n`, { mode: 0o600 });
  return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
}

/** The suite that runs with this directory. */
export function suiteIn(directory: string): RunningSuite | undefined {
  try {
    const suite = JSON.parse(readFileSync(join(directory, record), "utf8")) as RunningSuite;
    return isSameProcessAlive(suite) ? suite : undefined;
  } catch {
    return undefined; // there is none
  }
}

/** The key of the suite in the directory, if that is the one that runs at the address (K1). */
export function keyOfSuiteAt(url: string, directory: string): string | undefined {
  const own = suiteIn(directory);
  if (own === undefined || !isSameAddress(own.url, url)) return undefined;
  try {
    return readFileSync(join(directory, "keys", "local"), "utf8").trim();
  } catch {
    return undefined; // it has no such key
  }
}

function isSameAddress(one: string, other: string): boolean {
  const [a, b] = [URL.parse(one), URL.parse(other)];
  const nameOf = (url: URL | null) => (url?.hostname === "localhost" ? "127.0.0.1" : url?.hostname);
  return a?.protocol === b?.protocol && a?.port === b?.port && nameOf(a) === nameOf(b);
}
