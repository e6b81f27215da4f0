// The slot of one source in the pool: it has at most one worker that takes calls, and workers that are on their way out.
//
//   stopped ──call──▶ starting ──▶ ready ──idle, file changed, stopped──▶ stopped
//      ▲                 │           │
//      └── the time is over          └── crash
//      └───── backed off ◀───────────┘  after the third in a row

import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { PoolTimes } from "../config.ts";
import type { OfferedFile } from "../files/tool-file.ts";
import type { Worker } from "../worker/worker.ts";
import { CrashBackoff, refuseBackedOff } from "./crash-backoff.ts";
import { createPermits, type Line, type Permits } from "./permits.ts";

export type SlotState =
  | { kind: "stopped" }
  | { kind: "starting"; digest: string; opened: Promise<Worker>; abort: AbortController }
  | { kind: "ready"; worker: Worker }
  /** The reason is for callers, the detail for operators. */
  | { kind: "backed_off"; digest: string; retryAtMs: number; reason: string; detail: string };

export interface SlotOptions {
  source: string;
  file: string;
  calls: number;
  line: Line;
  times: Pick<PoolTimes, "idleMs" | "backoffMs" | "maxBackoffMs">;
  /** Installs and starts a worker. */
  open: (file: OfferedFile, onIdle: () => void, signal: AbortSignal) => Promise<Worker>;
  onCrash: (detail: string, digest: string) => void;
  /** Whether somebody waits for a worker to end, so that another can start. */
  isCrowded: () => boolean;
}

export class SourceSlot {
  readonly source: string;
  readonly file: string;
  /** One for each call on the worker. */
  readonly permits: Permits;
  /** Every process that has not ended, with the start that it came from. */
  readonly workers = new Map<Worker, number>();
  /** How many were started so far. */
  starts = 0;
  callsTotal = 0;
  state: SlotState = { kind: "stopped" };
  readonly #options: SlotOptions;
  readonly #crashes: CrashBackoff;
  #endIdling: () => void = () => {};

  constructor(options: SlotOptions) {
    this.#options = options;
    this.source = options.source;
    this.file = options.file;
    this.permits = createPermits(options.calls, `places on the worker ${options.source}`, options.line);
    this.#crashes = new CrashBackoff(options.times);
  }

  /** The worker that takes calls for this version of the file, started if there is none. */
  async worker(file: OfferedFile): Promise<Worker> {
    for (;;) {
      const { state } = this;
      if (state.kind === "ready" && state.worker.isLost) await state.worker.ended;
      else if (state.kind === "ready" && this.#serves(state.worker, file)) return state.worker;
      else if (state.kind === "starting" && state.digest === file.digest) await state.opened;
      else if (state.kind === "starting")
        await state.opened.catch(() => {}); // of a version that is gone: its failure too
      else this.#start(file);
    }
  }

  /** A worker answered: what crashed before is over. */
  noteAnswer(): void {
    this.#crashes.reset();
  }

  /** The worker is in use. */
  keepAwake(): void {
    this.#endIdling();
    this.callsTotal += 1;
  }

  /** Ends a worker that was started for callers who have left, when others wait for a worker to end. */
  makeRoom(): void {
    if (this.permits.isFree && this.#options.isCrowded()) void this.endIdle();
  }

  /** Lets the worker finish what it has; the next call starts another. */
  async renew(): Promise<void> {
    this.noteAnswer();
    if (this.state.kind === "starting") await this.state.opened.catch(() => {}); // whoever waits for it is told
    if (this.state.kind === "ready" || this.state.kind === "backed_off") this.state = { kind: "stopped" };
    await Promise.all([...this.workers.keys()].map((worker) => worker.retire()));
  }

  /** Ends the idle worker, and waits for no other: one of an older version may have calls for long. */
  async endIdle(): Promise<void> {
    if (this.state.kind !== "ready" || !this.isIdle) return;
    const { worker } = this.state;
    this.state = { kind: "stopped" };
    await worker.retire();
  }

  /** Ends every process at once. */
  async stop(reason: string): Promise<void> {
    this.#endIdling();
    await this.#giveUpStart(reason);
    await Promise.all([...this.workers.keys()].map((worker) => worker.stop(reason)));
  }

  /** Ends the worker of one start, after its calls unless it is forced; gives whether there is one. */
  async stopStart(start: number, force: boolean): Promise<boolean> {
    const stopped = `the worker of ${this.source} was stopped`;
    const isNext = this.state.kind === "starting" || this.state.kind === "backed_off";
    if (isNext && start === this.starts) {
      if (this.state.kind !== "starting" || force) {
        this.noteAnswer();
        await this.#giveUpStart(stopped);
        return true;
      }
      await this.state.opened.catch(() => {}); // whoever waits for it is told
    }
    const [worker] = [...this.workers].find(([, of]) => of === start) ?? [];
    if (worker === undefined) return isNext && start === this.starts;
    if (this.state.kind === "ready" && this.state.worker === worker) {
      this.noteAnswer();
      this.#endIdling();
      this.state = { kind: "stopped" };
    }
    await (force ? worker.stop(stopped) : worker.retire());
    return true;
  }

  /** What starts is given up, what is backed off may start again. */
  async #giveUpStart(reason: string): Promise<void> {
    if (this.state.kind === "starting") {
      this.state.abort.abort(new Failure("unavailable", reason, { reason: "WORKER_STOPPED" }));
      await this.state.opened.catch(() => {}); // those who wait for it are told
    }
    this.state = { kind: "stopped" };
  }

  get isIdle(): boolean {
    return this.state.kind === "ready" && this.state.worker.callsInFlight === 0;
  }

  get isUnused(): boolean {
    return this.state.kind === "stopped" && this.workers.size === 0 && this.permits.isFree;
  }

  get lastUsedAtMs(): number {
    return Math.max(0, ...[...this.workers.keys()].map((worker) => worker.lastUsedAtMs));
  }

  #serves(worker: Worker, file: OfferedFile): boolean {
    if (worker.accepts && worker.digest === file.digest) return true;
    void worker.retire();
    this.state = { kind: "stopped" };
    return false;
  }

  #start(file: OfferedFile): void {
    if (this.state.kind === "backed_off" && this.state.digest === file.digest)
      refuseBackedOff(this.state.retryAtMs, this.state.reason);
    this.starts += 1;
    const start = this.starts;
    const abort = new AbortController();
    const onIdle = () => (this.#options.isCrowded() ? void this.endIdle() : this.#startIdling());
    const opened = callPatience.exit(() => this.#options.open(file, onIdle, abort.signal)); // for later calls, too
    this.state = { kind: "starting", digest: file.digest, opened, abort };
    opened.then(
      (worker) => this.#take(worker, start),
      (error) => this.#noteFailedStart(error, file.digest),
    );
  }

  #take(worker: Worker, start: number): void {
    this.workers.set(worker, start);
    this.state = { kind: "ready", worker };
    this.#startIdling();
    this.makeRoom();
    void worker.ended.then(({ wasExpected, ...end }) => {
      this.workers.delete(worker);
      const isCurrent = this.state.kind === "ready" && this.state.worker === worker;
      if (isCurrent) this.state = { kind: "stopped" };
      if (!wasExpected) this.#noteCrash(end, worker.digest);
    });
  }

  /** A start that was refused for want of room, or given up, says nothing about the file. A failed install has a time of its own. */
  #noteFailedStart(error: unknown, digest: string): void {
    if (error instanceof Failure && error.metadata?.retry_in_ms !== undefined) {
      const retryAtMs = Date.now() + Number(error.metadata.retry_in_ms);
      this.state = { kind: "backed_off", digest, retryAtMs, reason: error.message, detail: error.message };
      return;
    }
    this.state = { kind: "stopped" };
    if (error instanceof Failure && error.code === "failed_precondition")
      this.#noteCrash({ reason: error.message, detail: String(error.cause ?? error.message) }, digest);
  }

  #noteCrash(end: { reason: string; detail: string }, digest: string): void {
    const retryAtMs = this.#crashes.noteCrash();
    this.#options.onCrash(end.detail, digest);
    if (this.state.kind === "ready" || this.state.kind === "starting") return; // another has taken its place already
    if (retryAtMs !== undefined) this.state = { kind: "backed_off", digest, retryAtMs, ...end };
  }

  #startIdling(): void {
    this.#endIdling();
    this.#endIdling = startTimer(this.#options.times.idleMs, () => void this.endIdle(), { isBackground: true });
  }
}
