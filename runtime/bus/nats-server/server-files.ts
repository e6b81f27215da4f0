import { mkdir, readFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { unlessAbsent } from "../../failure/errno.ts";
import { jsonFrom } from "../../schema/json-object.ts";
import { writePrivateFile } from "../credentials/files/private-file.ts";
import type { ProcessIdentity } from "./process-identity.ts";

/** The default survives `kill -9` of any process; `always` also survives the loss of power, at two to three times the time an append takes. */
type SyncInterval = "default" | "always";

/** Who runs here: what the next opener needs to tell a left-over server from one that is in use. */
export interface RunRecord {
  readonly server: ProcessIdentity;
  readonly owner: ProcessIdentity;
  readonly port: number;
}

export interface ServerFiles {
  readonly directory: string;
  readonly config: string;
  readonly record: string;
  readonly lock: string;
  readonly ports: string;
  readonly log: string;
  readonly store: string;
}

export async function openServerFiles(directory: string): Promise<ServerFiles> {
  const root = resolve(directory);
  await mkdir(root, { recursive: true, mode: 0o700 });
  return filesOfServer(root);
}

/** Where they are, or would be. */
export function filesOfServer(root: string): ServerFiles {
  const at = (name: string) => join(root, name);
  return {
    directory: root,
    config: at("nats-server.conf"),
    record: at("nats-server.pid.json"),
    lock: at("nats-server.lock.db"),
    ports: at("ports"),
    log: at("nats-server.log"),
    store: at("store"),
  };
}

export interface ServerSettings {
  /** Who may sign in, as `writeCredentials` wrote it. */
  readonly usersFile: string;
  /** 0, the default, takes a free one. Give the port of a server that ended, and its clients come back. */
  readonly port?: number;
  readonly syncInterval?: SyncInterval;
  /** How many pings in a row a connection may leave unanswered; `PING_MAX` unless told. */
  readonly pingMax?: number;
}

/**
 * The server drops a connection behind which nobody answers, and gives it no more calls. The first ping goes out one or two intervals
 * (400 ms) after the last sign of life, so that it takes 2.4 to 2.8 s; a process that is only busy has 2 s. Unset, it takes 4 to 6 minutes.
 */
export const PING_MAX = 5;

/** Everything the server needs stands in its file: its command line shows no secret, and names the file as ours. */
export async function writeServerConfig(files: ServerFiles, settings: ServerSettings): Promise<void> {
  await mkdir(files.ports, { recursive: true });
  const values = {
    server_name: "toolbus",
    host: "127.0.0.1",
    port: settings.port || -1,
    ports_file_dir: files.ports,
    log_file: files.log,
    logfile_size_limit: 16 * 1024 * 1024,
    logfile_max_num: 3,
    ping_interval: "400ms",
    ping_max: settings.pingMax ?? PING_MAX,
    jetstream: {
      store_dir: files.store,
      max_file_store: 64 * 1024 ** 3,
      ...(settings.syncInterval === "always" ? { sync_interval: "always" } : {}),
    },
  };
  const lines = Object.entries(values).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  const users = relative(files.directory, settings.usersFile); // the server knows no absolute path here
  lines.push(`authorization { include ${JSON.stringify(users)} }`);
  await writePrivateFile(files.config, `${lines.join("\n")}\n`);
}

export async function writeRunRecord(files: ServerFiles, record: RunRecord): Promise<void> {
  await writePrivateFile(files.record, JSON.stringify(record));
}

export async function readRunRecord(files: ServerFiles): Promise<RunRecord | undefined> {
  const text = (await readFile(files.record, "utf8").catch(unlessAbsent)) ?? "";
  return jsonFrom(text) as RunRecord | undefined; // cut short by a crash while it was written: as good as absent
}
