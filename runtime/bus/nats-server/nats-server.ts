import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Failure } from "../../failure/failure.ts";
import { LocalFailure } from "../../failure/local-failure.ts";
import { type ChildProcess, openChildProcess } from "../../lifecycle/child-process/child-process.ts";
import { textFromExit } from "../../lifecycle/child-process/exit.ts";
import { until } from "../../time/until.ts";
import { readLogin, type UsersOf, writeCredentials } from "../credentials/directory.ts";
import { ADMIN, type BusLogin } from "../credentials/login.ts";
import type { FindOptions } from "./find/executable.ts";
import { findNatsServer } from "./find/find-nats-server.ts";
import { endLeftOver } from "./left-over.ts";
import { openLockFile } from "./lock-file.ts";
import { identityOfProcess } from "./process-identity.ts";
import {
  openServerFiles,
  type ServerFiles,
  type ServerSettings,
  writeRunRecord,
  writeServerConfig,
} from "./server-files.ts";

export interface NatsServerOptions extends Omit<ServerSettings, "usersFile"> {
  /** Holds the JetStream store, the configuration and the log. One server at a time uses it. */
  directory: string;
  /** Where the keys of its users are, and are made if they are missing; `credentials` in the directory unless told. */
  credentials?: string | undefined;
  /** Who may sign in beside `admin`. */
  users?: UsersOf | undefined;
  /** The path of the program; unless told, `findNatsServer(find)` is asked. */
  binary?: string | undefined;
  find?: FindOptions;
}

const readyTimeoutMs = 15_000;

export interface NatsServer extends AsyncDisposable {
  readonly url: string;
  /** The directory of its users' keys. */
  readonly credentials: string;
  /** May do everything. */
  readonly login: BusLogin;
  readonly port: number;
  readonly pid: number;
  readonly directory: string;
  /** Settles when the server has ended, also when nobody here asked for it; tells how. */
  readonly exited: Promise<string>;
}

/**
 * Starts the one-machine server on the loopback interface, with JetStream and a key for each of its users, and waits until it
 * is ready. It ends with its owner: by disposing, or when the owner's process dies. One that was left over in the
 * directory is replaced; one whose owner lives is refused with `failed_precondition`.
 */
export async function openNatsServer(options: NatsServerOptions): Promise<NatsServer> {
  const binary = options.binary ?? (await findNatsServer(options.find));
  const files = await openServerFiles(options.directory);
  using _lock = await openLockFile(files.lock);
  await endLeftOver(files);
  const credentials = options.credentials ?? join(files.directory, "credentials");
  const { path, usersFile } = await writeCredentials(credentials, options.users ?? (() => []));
  await rm(files.ports, { recursive: true, force: true });
  await writeServerConfig(files, { ...options, usersFile });

  await using stack = new AsyncDisposableStack();
  const server = stack.use(
    await openChildProcess({ command: binary, args: ["-c", files.config], inputGraceMs: 0, terminationGraceMs: 5_000 }),
  );
  const port = await waitUntilReady(server, files);
  await record(server, files, port);
  stack.move(); // from here on the server belongs to the caller
  return {
    credentials: path,
    login: await readLogin(path, ADMIN),
    url: `nats://127.0.0.1:${port}`,
    port,
    pid: server.pid,
    directory: files.directory,
    exited: server.exited.then(textFromExit),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** The server writes its ports when it listens, which is after its store has been read. */
async function waitUntilReady(server: ChildProcess, files: ServerFiles): Promise<number> {
  const what = `nats-server to be ready (its log: ${files.log})`;
  return until(
    async () => {
      if (server.hasExited) throw await failureFromExit(textFromExit(await server.exited), files);
      return readPort(files);
    },
    { timeoutMs: readyTimeoutMs, what },
  );
}

async function readPort(files: ServerFiles): Promise<number | undefined> {
  const [name] = (await readdir(files.ports)).filter((file) => file.endsWith(".ports"));
  if (name === undefined) return undefined;
  try {
    const ports = JSON.parse(await readFile(join(files.ports, name), "utf8")) as { nats?: string[] };
    return Number(new URL(ports.nats?.[0] ?? "").port);
  } catch {
    return undefined; // half written: read again
  }
}

async function failureFromExit(exit: string, files: ServerFiles): Promise<Failure> {
  const log = await readFile(files.log, "utf8").catch(() => ""); // it may have ended before it wrote any
  const lines = log.trim().split("\n").slice(-5).join("\n");
  return new LocalFailure("unavailable", `nats-server ended before it was ready: it ${exit}\n${lines}`, {
    kind: "nats_server_not_started",
  });
}

async function record(server: ChildProcess, files: ServerFiles, port: number): Promise<void> {
  const [child, owner] = [identityOfProcess(server.pid), identityOfProcess(process.pid)];
  if (child === undefined || owner === undefined) return; // it ended meanwhile, which `exited` tells
  await writeRunRecord(files, { server: child, owner, port });
}
