import { readEnvironment } from "#runtime/config/environment.ts";
import { SECRET_PREFIX, secretsFromEnvironment } from "#runtime/config/secrets.ts";
import { type ServiceConfig, serviceConfigFromReader } from "#runtime/config/service-config.ts";

/** What a call does when everything that it needs is busy. */
export type Overflow = "wait" | "refuse";

export interface WorkerLimits {
  /** Calls in flight on one worker; also its threads. */
  calls: number;
  /** The longest line of the protocol, either way: the size of arguments and results. */
  maxLineBytes: number;
  /** Of a worker's address space; 0 for none. */
  memoryBytes: number;
  /** Of a worker's processor time in all its life; 0 for none. */
  processorSeconds: number;
}

export interface PoolLimits {
  /** Functions that run at the same time, on all workers together. */
  calls: number;
  workers: number;
  overflow: Overflow;
  /** Calls that may wait in line; those beyond are refused in any case. */
  waiting: number;
}

export interface PoolTimes {
  idleMs: number;
  installMs: number;
  startMs: number;
  /** Of a call that comes without a deadline. */
  callMs: number;
  /** How long a cancelled function may take to end before its worker is replaced. */
  cancelGraceMs: number;
  /** The wait before a worker that keeps crashing is started again: the first, and the longest. */
  backoffMs: number;
  maxBackoffMs: number;
}

export interface WorkerPoolConfig extends ServiceConfig {
  directory: string;
  /** Where to find uv; looked for on the PATH, else fetched, when it is not set. */
  uv?: string;
  /** Whether dependencies are installed as soon as a file is seen, instead of at its first call. */
  installsAhead: boolean;
  worker: WorkerLimits;
  pool: PoolLimits;
  times: PoolTimes;
  hosted: {
    /** Of TypeScript and JavaScript modules, which run in this process. */
    directory: string;
    /** Of the JavaScript heap of each. */
    heapBytes: number;
  };
  /** Name → value. */
  secrets: ReadonlyMap<string, string>;
  secretPrefix: string;
  /** Where `shell_exec` looks for commands that are allowed by their bare name. */
  commandPath: string;
  /** For uv while it installs. */
  installEnvironment: Record<string, string>;
  /** For workers: nothing that could be a secret of ours. */
  workerEnvironment: Record<string, string>;
}

const WORKER_VARIABLES =
  /^(PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|(http|https|all|no)_proxy|UV_CACHE_DIR|XDG_CACHE_HOME)$/i;
const TRUST_VARIABLES = /^(SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$/;
const INSTALL_VARIABLES = /^(UV_\w+|XDG_\w+|NETRC|SSH_AUTH_SOCK|GIT_SSH_COMMAND)$/;
const MEBIBYTE = 2 ** 20;

export function readConfig(env: NodeJS.ProcessEnv): WorkerPoolConfig {
  const reader = readEnvironment(env);
  const count = (name: string, fallback: number, min = 1) => reader.integer(name, { default: fallback, min });
  const time = (name: string, fallbackMs: number) => reader.milliseconds(name, { default: fallbackMs, min: 1 });
  const uv = reader.optionalString("TOOLBUS_UV");
  const config: WorkerPoolConfig = {
    ...serviceConfigFromReader(reader),
    directory: reader.path("TOOLBUS_WORKERS", { default: "examples/workers" }),
    ...(uv !== undefined && { uv }),
    installsAhead: reader.boolean("TOOLBUS_WORKER_INSTALL_AHEAD", { default: true }),
    worker: {
      calls: count("TOOLBUS_WORKER_CALLS", 8),
      maxLineBytes: count("TOOLBUS_WORKER_MAX_LINE_BYTES", 64 * MEBIBYTE, 64 * 1024),
      memoryBytes: count("TOOLBUS_WORKER_MEMORY_BYTES", 0, 0),
      processorSeconds: count("TOOLBUS_WORKER_PROCESSOR_SECONDS", 0, 0),
    },
    pool: {
      calls: count("TOOLBUS_POOL_CALLS", 64),
      workers: count("TOOLBUS_POOL_WORKERS", 32),
      overflow: reader.string<Overflow>("TOOLBUS_POOL_OVERFLOW", { default: "wait", oneOf: ["wait", "refuse"] }),
      waiting: count("TOOLBUS_POOL_WAITING", 1_000, 0),
    },
    times: {
      idleMs: time("TOOLBUS_WORKER_IDLE", 600_000),
      installMs: time("TOOLBUS_WORKER_INSTALL_TIMEOUT", 300_000),
      startMs: time("TOOLBUS_WORKER_START_TIMEOUT", 30_000),
      callMs: time("TOOLBUS_WORKER_CALL_TIMEOUT", 30_000),
      cancelGraceMs: time("TOOLBUS_WORKER_CANCEL_GRACE", 1_000),
      backoffMs: time("TOOLBUS_WORKER_BACKOFF", 1_000),
      maxBackoffMs: time("TOOLBUS_WORKER_MAX_BACKOFF", 60_000),
    },
    hosted: {
      directory: reader.path("TOOLBUS_HOSTED", { default: "examples/hosted" }),
      heapBytes: count("TOOLBUS_HOSTED_MEMORY_BYTES", 512 * MEBIBYTE, 16 * MEBIBYTE),
    },
    secrets: secretsFromEnvironment(env),
    secretPrefix: SECRET_PREFIX,
    commandPath: reader.string("TOOLBUS_COMMAND_PATH", { default: "/usr/local/bin:/usr/bin:/bin" }),
    installEnvironment: variables(env, WORKER_VARIABLES, TRUST_VARIABLES, INSTALL_VARIABLES),
    workerEnvironment: variables(env, WORKER_VARIABLES, TRUST_VARIABLES),
  };
  reader.finish();
  return config;
}

function variables(env: NodeJS.ProcessEnv, ...patterns: RegExp[]): Record<string, string> {
  const chosen = Object.entries(env).flatMap(([name, value]) =>
    value && patterns.some((pattern) => pattern.test(name)) ? [[name, value]] : [],
  );
  return Object.fromEntries(chosen);
}
