import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { type Backoff, createBackoff } from "#runtime/time/retry/backoff.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { PoolTimes } from "../../config.ts";
import type { OfferedFile } from "../../files/tool-file.ts";
import { isThere } from "./environment.ts";

type Install = (file: OfferedFile, onLine: (line: string) => void, signal: AbortSignal) => Promise<string>;
type Times = Pick<PoolTimes, "backoffMs" | "maxBackoffMs">;

/** One file's environment, of one set of dependencies. */
interface Installation {
  environment: string;
  python: Promise<string>;
  /** Undefined while it is made, empty where that failed. */
  path: string | undefined;
  /** What is worth showing to whoever waits for it. */
  lastLine: string;
  failed?: { error: Failure; retryAtMs: number };
  backoff: Backoff;
}

/** One that is done sooner is not worth a word. */
const QUIET_MS = 500;
/** What uv says too where there is nothing to do. */
const QUIET_LINES = /^(Resolved|Checked|Audited) /;

/** Installs what files need, each set of dependencies once, however many ask. A failure is remembered for a while. */
export class Installations implements AsyncDisposable {
  readonly #install: Install;
  readonly #times: Times;
  readonly #installations = new Map<string, Installation>();
  readonly #watchers = new KeyedListeners<[string]>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();
  #last: Promise<unknown> = Promise.resolve();

  constructor(install: Install, times: Times) {
    this.#install = install;
    this.#times = times;
  }

  /** The path of the Python that has what the file needs. */
  async python(file: OfferedFile): Promise<string> {
    const found = this.#installations.get(file.file);
    const known = found?.environment === file.environment ? found : undefined;
    const leftMs = known?.failed ? known.failed.retryAtMs - Date.now() : 0;
    if (known?.failed && leftMs > 0) throw withRetry(known.failed.error, leftMs);
    const isKept = known && !known.failed && (known.path === undefined || isThere(known.path));
    return isKept ? known.python : this.#begin(file, known?.backoff);
  }

  /** Tells what is done for a file while it is installed; gives what ends the telling. */
  watch(file: string, onLine: (line: string) => void): () => void {
    const watching = this.#watchers.add(file, onLine);
    const running = this.#installations.get(file);
    if (running && running.path === undefined && running.lastLine !== "") onLine(running.lastLine);
    return () => watching[Symbol.dispose]();
  }

  /** Installs in the background, one file after the other, so that a first call need not wait. */
  installAhead(files: readonly OfferedFile[]): void {
    for (const file of files) {
      this.#last = this.#last.then(() => (this.#stop.signal.aborted ? "" : this.python(file))).catch(() => ""); // a call is told
    }
  }

  #begin(file: OfferedFile, known: Backoff | undefined): Promise<string> {
    const { backoffMs, maxBackoffMs } = this.#times;
    const backoff = known ?? createBackoff({ initialMs: backoffMs, maxMs: maxBackoffMs });
    const show = (line: string) => {
      if (installation.path !== undefined) return;
      installation.lastLine = line;
      this.#watchers.notify(file.file, line);
    };
    const endQuiet = startTimer(QUIET_MS, () => show(`installing what ${file.file} depends on`), {
      isBackground: true,
    });
    const onLine = (line: string) => void (QUIET_LINES.test(line) || show(line));
    const python = this.#install(file, onLine, this.#stop.signal);
    const installation: Installation = {
      environment: file.environment,
      python: python.catch((cause) => {
        if (this.#stop.signal.aborted) throw cause;
        const error = failureFrom(cause);
        const waitMs = backoff.next();
        installation.failed = { error, retryAtMs: Date.now() + waitMs };
        throw withRetry(error, waitMs);
      }),
      path: undefined,
      lastLine: "",
      backoff,
    };
    const over = installation.python
      .catch(() => "") // whoever asked is told
      .then((path) => {
        endQuiet();
        installation.path = path;
        this.#running.delete(over);
      });
    this.#running.add(over);
    this.#installations.set(file.file, installation);
    return installation.python;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }
}

/** A fault of the machine, such as a full disk, may pass as any other. */
function failureFrom(cause: unknown): Failure {
  if (cause instanceof Failure) return cause;
  const message = `the dependencies could not be installed: ${messageFromUnknown(cause)}`;
  return new Failure("failed_precondition", message, { reason: "WORKER_INSTALL_FAILED", cause });
}

function withRetry({ code, message, reason, metadata }: Failure, waitMs: number): Failure {
  return new Failure(code, message, { reason, metadata: { ...metadata, retry_in_ms: String(waitMs) } });
}
