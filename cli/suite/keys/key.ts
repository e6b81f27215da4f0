// The key of a suite on one machine: whoever may read its directory may use it, and nobody else.
//
//   DIRECTORY/keys/local   the key, mode 0600; made at the first start
//   DIRECTORY/keys/mcp-logins   the key that encrypts logins at MCP servers
//   DIRECTORY/suite.json   as which process the suite runs, and where it listens as long as it does
//
// K1  The command sends the key to the address of a suite that runs, and to no other: when it has ended, another program of
//     another user may listen there.
// K2  A repository may bring a `suite.json`, and another user may write one into a folder that both use. So it counts only if it is
//     this user's alone, and names this boot of the machine: what comes from elsewhere cannot know that, while process ids and the
//     moments of their starts can be guessed.

import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  bootId,
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
    const key = readFileSync(path, "utf8").trim();
    if (key !== "") return { key, path, isNew: false };
    rmSync(path); // it is from a start that the machine did not survive
  }
  mkdirSync(join(directory, "keys"), { recursive: true, mode: 0o700 });
  const key = make();
  writeFileSync(path, `${key}\n`, { mode: 0o600, flag: "wx", flush: true });
  return { key, path, isNew: true };
}

/** Whole or not at all. */
export function writePrivate(path: string, text: string): void {
  const draft = `${path}.${process.pid}`;
  rmSync(draft, { force: true }); // one that is there keeps its mode and its owner
  try {
    writeFileSync(draft, `${text}\n`, { mode: 0o600, flag: "wx", flush: true });
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

function refuseShared(path: string): void {
  if (process.platform === "win32" || (statSync(path).mode & 0o077) === 0) return;
  const text = `others can read the key in ${path}: chmod 600 it, or delete it to get a new one`;
  throw new LocalFailure("failed_precondition", text, { kind: "key_not_private" });
}

/** A suite, and the process that started it. */
export interface RunningSuite extends ProcessIdentity {
  /** Where it listens; empty before and after (K1), and without a gateway. */
  readonly url: string;
  readonly state: "starting" | "up" | "stopping";
  readonly boot: string;
}

export interface AnnouncedSuite extends Disposable {
  /** Disposing tells that it stops. */
  isUp(url: string): Disposable;
}

/** Lets commands find a suite from its start on; disposing takes it back. It stops from the moment on that the signal aborts. */
export function announceSuite(directory: string, stop?: AbortSignal): AnnouncedSuite {
  const path = join(directory, record);
  const own = { pid: process.pid, startedAt: "", ...identityOfProcess(process.pid), boot: bootId() };
  const write = (state: RunningSuite["state"], url = "") => writePrivate(path, JSON.stringify({ url, state, ...own }));
  const isHeld = () => suiteIn(directory)?.pid === own.pid; // of two that start at once, one gives up
  const remove = () => {
    try {
      if (isHeld()) rmSync(path);
    } catch {} // the process that it names ends soon
  };
  const stops = () => {
    try {
      if (isHeld()) write("stopping");
    } catch {
      remove(); // nothing can be written there, which must not keep the suite from stopping
    }
  };
  write("starting");
  if (stop?.aborted) stops();
  stop?.addEventListener("abort", stops);
  return {
    isUp(url) {
      if (!stop?.aborted) write("up", url);
      return { [Symbol.dispose]: stops };
    },
    [Symbol.dispose]() {
      stop?.removeEventListener("abort", stops);
      remove();
    },
  };
}

/** The suite that runs with this directory (K2). */
export function suiteIn(directory: string): RunningSuite | undefined {
  try {
    const suite = JSON.parse(readPrivate(join(directory, record))) as RunningSuite;
    const state = suite.state ?? "up"; // earlier releases wrote none, and this once it was up
    return suite.boot === bootId() && isSameProcessAlive(suite) ? { ...suite, state } : undefined;
  } catch {
    return undefined; // there is none
  }
}

/** Throws for what is not this user's alone, which is asked of the very file that is read. */
function readPrivate(path: string): string {
  const file = openSync(path, "r");
  try {
    if (!isOwn(fstatSync(file))) throw new Error(`${path} is not this user's alone`);
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

/** Whether a file is one that this user alone can read and write. */
export function isOwn(stats: Stats): boolean {
  if (process.geteuid === undefined) return true; // Windows has other rights
  return stats.isFile() && stats.uid === process.geteuid() && (stats.mode & 0o077) === 0;
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
