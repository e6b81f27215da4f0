import { confinementFromReader } from "#runtime/config/confinement.ts";
import { readEnvironment } from "#runtime/config/environment.ts";
import { SECRET_PREFIX, secretsFromReader } from "#runtime/config/secrets/secrets.ts";
import { serviceConfigFromReader } from "#runtime/config/service-config.ts";

/** What each setting means is said where it is read. */
export type WorkerPoolConfig = ReturnType<typeof readConfig>;
export type WorkerLimits = WorkerPoolConfig["worker"];
export type PoolTimes = WorkerPoolConfig["times"];

const WORKER_VARIABLES =
  /^(PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|(http|https|all|no)_proxy|UV_CACHE_DIR|XDG_CACHE_HOME)$/i;
const TRUST_VARIABLES = /^(SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$/;
const INSTALL_VARIABLES = /^(UV_\w+|XDG_\w+|NETRC|SSH_AUTH_SOCK|GIT_SSH_COMMAND)$/;
const MEBIBYTE = 2 ** 20;

export function readConfig(env: NodeJS.ProcessEnv) {
  const reader = readEnvironment(env);
  const count = (name: string, fallback: number, options: { meaning: string; min?: number; unit?: string }) =>
    reader.integer(name, { default: fallback, min: 1, ...options });
  const time = (name: string, fallbackMs: number, meaning: string) =>
    reader.milliseconds(name, { meaning, default: fallbackMs, min: 1 });
  const variables = (...patterns: RegExp[]) =>
    reader.inherited((name) => patterns.some((pattern) => pattern.test(name)));
  const uv = reader.optionalString("TOOLBUS_UV", {
    meaning: "Path of the program uv.",
    form: "path",
    whenUnset: "the one on the PATH, else fetched from PyPI",
  });
  const service = serviceConfigFromReader(reader);
  const config = {
    ...service,
    directory: reader.path("TOOLBUS_WORKERS", {
      meaning: "Directory of Python files whose functions are tools.",
      default: "workers",
    }),
    ...(uv !== undefined && { uv }),
    installsAhead: reader.boolean("TOOLBUS_WORKER_INSTALL_AHEAD", {
      meaning: "Install what a file depends on when the file appears, not at its first call.",
      default: true,
    }),
    worker: {
      calls: count("TOOLBUS_WORKER_CALLS", 8, {
        meaning:
          "Calls in flight on one worker; beside them, calls that have asked for a tool, up to sixteen times as many.",
      }),
      maxCalls:
        count("TOOLBUS_WORKER_MAX_CALLS", 0, {
          meaning: "Calls that a worker gets in its whole life; further ones run on another worker. 0 for any number.",
          min: 0,
        }) || Number.POSITIVE_INFINITY,
      keepsSpare: reader.boolean("TOOLBUS_WORKER_SPARE", {
        meaning:
          "Keep a second worker of each source in use ready, which takes the place of one that ends for any reason. Otherwise one is started only for the second half of a worker's calls or life.",
        default: false,
      }),
      maxLineBytes: count("TOOLBUS_WORKER_MAX_LINE_BYTES", 64 * MEBIBYTE, {
        meaning: "Largest arguments of a call, and largest result.",
        unit: "bytes",
        min: 64 * 1024,
      }),
      memoryBytes: count("TOOLBUS_WORKER_MEMORY_BYTES", 0, {
        meaning: "Limit of a worker's address space; 0 for none.",
        unit: "bytes",
        min: 0,
      }),
      processorSeconds: count("TOOLBUS_WORKER_PROCESSOR_SECONDS", 0, {
        meaning: "Limit of the processor time that a worker may use in its whole life; 0 for none.",
        unit: "seconds",
        min: 0,
      }),
    },
    pool: {
      calls: count("TOOLBUS_POOL_CALLS", 64, {
        meaning:
          "Calls in flight on all workers together, beside those that have asked for a tool; as many on hosted modules, and of built-ins.",
      }),
      workers: count("TOOLBUS_POOL_WORKERS", 32, { meaning: "Worker processes; an idle one makes room for another." }),
      overflow: reader.string("TOOLBUS_POOL_OVERFLOW", {
        meaning:
          "What a call does when everything that it needs is busy: wait in line, or be refused with `resource_exhausted`.",
        default: "wait",
        oneOf: ["wait", "refuse"],
      }),
      waiting: count("TOOLBUS_POOL_WAITING", 1_000, {
        meaning: "Calls that may wait in line; further ones are refused.",
        min: 0,
      }),
    },
    times: {
      idleMs: time("TOOLBUS_WORKER_IDLE", 600_000, "A worker that gets no call for so long is ended."),
      maxLifeMs:
        reader.milliseconds("TOOLBUS_WORKER_MAX_LIFE", {
          meaning:
            "A worker that has taken calls for so long gets no further one, and ends after those that it has; 0 for any time.",
          default: 0,
          min: 0,
        }) || Number.POSITIVE_INFINITY,
      installMs: time("TOOLBUS_WORKER_INSTALL_TIMEOUT", 300_000, "Time limit for installing dependencies."),
      startMs: time("TOOLBUS_WORKER_START_TIMEOUT", 30_000, "Time limit for starting Python and importing the file."),
      callMs: time("TOOLBUS_WORKER_CALL_TIMEOUT", 30_000, "Time limit of a call that comes without a deadline."),
      cancelGraceMs: time(
        "TOOLBUS_WORKER_CANCEL_GRACE",
        1_000,
        "How long a canceled function may take to end; then its worker is replaced.",
      ),
      backoffMs: time(
        "TOOLBUS_WORKER_BACKOFF",
        1_000,
        "First wait before a worker is started again that keeps crashing, or a hosted module whose start failed.",
      ),
      maxBackoffMs: time(
        "TOOLBUS_WORKER_MAX_BACKOFF",
        60_000,
        "Longest wait before a worker is started again that keeps crashing, or a hosted module whose start failed.",
      ),
    },
    hosted: {
      directory: reader.path("TOOLBUS_HOSTED", {
        meaning: "Directory of hosted modules, each of which runs in a process of its own.",
        default: "hosted",
      }),
      heapBytes: count("TOOLBUS_HOSTED_MEMORY_BYTES", 512 * MEBIBYTE, {
        meaning: "JavaScript heap of each hosted module.",
        unit: "bytes",
        min: 16 * MEBIBYTE,
      }),
    },
    secrets: secretsFromReader(reader, "Secret NAME, for sources that name it."),
    confinement: confinementFromReader(reader, service),
    secretPrefix: SECRET_PREFIX,
    commandPath: reader.string("TOOLBUS_COMMAND_PATH", {
      meaning: "Where `shell_exec` looks for commands that are allowed by their bare name.",
      form: "directories separated by colons",
      default: "/usr/local/bin:/usr/bin:/bin",
    }),
    /** For uv while it installs. */
    installEnvironment: variables(WORKER_VARIABLES, TRUST_VARIABLES, INSTALL_VARIABLES),
    /** For workers: nothing that could be a secret of ours. */
    workerEnvironment: variables(WORKER_VARIABLES, TRUST_VARIABLES),
  };
  reader.finish();
  return config;
}
