// The slot of one source in the pool: it has at most one worker that takes calls, and workers that are on their way out.
//
//   stopped ──call──▶ starting ──▶ ready ──idle, file changed, stopped──▶ stopped
//      ▲                 │           │
//      └── the time is over          └── crash
//      └───── backed off ◀───────────┘  after the third in a row
//
// SLOT1  A worker that has had its calls or its time takes no further call, and ends after those that it has.
// SLOT2  A spare goes through the same states beside it, started by a call in the second half of the worker's life, or by each where
//     so configured. It takes the place of a worker that takes no call any more, whatever the reason, unless its source is backed off.
// SLOT3  A spare takes room that nobody waits for, and is the first to give it. It backs off by itself, since answers of the worker do
//     not say that a second one can start.

import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { PoolTimes, WorkerLimits } from "../config.ts";
import type { OfferedFile } from "../files/tool-file.ts";
import type { Worker } from "../worker/worker.ts";
import { CrashBackoff, refuseBackedOff } from "./crash-backoff.ts";
import { createPermits, type Line, type Permits } from "./permits.ts";

export type SlotState =
  | { kind: "stopped" }
  | { kind: "starting"; file: OfferedFile; start: number; opened: Promise<Worker>; abort: AbortController }
  | { kind: "ready"; file: OfferedFile; worker: Worker }
  | ({ kind: "backed_off"; digest: string; start: number; retryAtMs: number } & Words);

type Starting = Extract<SlotState, { kind: "starting" }>;

/** Of an end: for callers, and for operators. */
interface Words {
  reason: string;
  detail: string;
}

interface Lane {
  state: SlotState;
  readonly crashes: CrashBackoff;
}

export interface SlotOptions {
  source: string;
  file: string;
  worker: Pick<WorkerLimits, "calls" | "maxCalls" | "keepsSpare">;
  line: Line;
  times: Pick<PoolTimes, "idleMs" | "maxLifeMs" | "backoffMs" | "maxBackoffMs">;
  /** Installs and starts a worker. */
  open: (file: OfferedFile, onIdle: () => void, signal: AbortSignal) => Promise<Worker>;
  onCrash: (detail: string, digest: string) => void;
  /** Whether somebody waits for a worker to end, so that another can start. */
  isCrowded: () => boolean;
  /** Whether another worker can start without one that ends. */
  hasRoom: () => boolean;
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
  /** Of the worker that takes calls. */
  readonly current: Lane;
  readonly spare: Lane;
  readonly #options: SlotOptions;
  #endIdling: () => void = () => {};
  #endLife: () => void = () => {};
  #servesSinceMs = 0;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.source = options.source;
    this.file = options.file;
    this.permits = createPermits(options.worker.calls, `places on the worker ${options.source}`, options.line);
    this.current = { state: { kind: "stopped" }, crashes: new CrashBackoff(options.times) };
    this.spare = { state: { kind: "stopped" }, crashes: new CrashBackoff(options.times) };
  }

  /** The worker that takes calls for this version of the file, started if there is none. */
  async worker(file: OfferedFile): Promise<Worker> {
    for (;;) {
      const { state } = this.current;
      if (state.kind === "ready" && state.worker.isLost) await state.worker.ended;
      else if (state.kind === "ready" && state.worker.accepts && state.worker.digest === file.digest)
        return state.worker;
      else if (state.kind === "ready") void this.#retire(state.worker);
      else if (state.kind === "starting" && state.file.digest === file.digest) await state.opened;
      else if (state.kind === "starting")
        await state.opened.catch(() => {}); // of a version that is gone: its failure too
      else {
        if (state.kind === "backed_off" && state.digest === file.digest) refuseBackedOff(state.retryAtMs, state.reason);
        this.#start(this.current, file);
      }
    }
  }

  /** A worker answered: what crashed before is over. */
  noteAnswer(): void {
    this.current.crashes.reset();
  }

  /** A call has begun on the worker. */
  noteCall(worker: Worker): void {
    this.#endIdling();
    this.callsTotal += 1;
    const { state } = this.current;
    if (state.kind === "ready" && this.#wantsSpare(worker)) this.#start(this.spare, state.file);
    if (worker.callsTaken >= this.#options.worker.maxCalls) void this.#retire(worker);
  }

  /** Ends a spare, or a worker that was started for callers who have left, when others wait for a worker to end. */
  makeRoom(): void {
    if (this.#options.isCrowded() && (this.hasSpare || this.permits.isFree)) void this.giveRoom();
  }

  /** Ends the spare, else the idle worker. */
  giveRoom(): Promise<void> {
    return this.hasSpare ? this.#endSpare() : this.endIdle();
  }

  /** Lets the worker finish what it has; the next call starts another. */
  async renew(): Promise<void> {
    this.noteAnswer();
    this.spare.crashes.reset();
    void this.#endSpare();
    if (this.current.state.kind === "starting") await this.current.state.opened.catch(() => {}); // whoever waits for it is told
    const { kind } = this.current.state;
    if (kind === "ready" || kind === "backed_off") this.current.state = { kind: "stopped" };
    await Promise.all([...this.workers.keys()].map((worker) => worker.retire()));
  }

  /** Ends the idle worker and its spare, and waits for no other: one of an older version may have calls for long. */
  async endIdle(): Promise<void> {
    const { state } = this.current;
    if (state.kind !== "ready" || !this.isIdle) return;
    void this.#endSpare();
    await this.#retire(state.worker);
  }

  /** Ends every process at once. */
  async stop(reason: string): Promise<void> {
    this.#endIdling();
    await Promise.all([this.#giveUpStart(this.current, reason), this.#giveUpStart(this.spare, reason)]);
    await Promise.all([...this.workers.keys()].map((worker) => worker.stop(reason)));
  }

  /** Ends the worker of one start, after its calls unless it is forced; gives whether there is one. */
  async stopStart(start: number, force: boolean): Promise<boolean> {
    const stopped = `the worker of ${this.source} was stopped`;
    const next = [this.current, this.spare].find(({ state }) => "start" in state && state.start === start);
    if (next) {
      if (next.state.kind !== "starting" || force) {
        next.crashes.reset();
        await this.#giveUpStart(next, stopped);
        return true;
      }
      await next.state.opened.catch(() => {}); // whoever waits for it is told
    }
    const [worker] = [...this.workers].find(([, of]) => of === start) ?? [];
    if (worker === undefined) return next !== undefined;
    this.#laneOf(worker)?.crashes.reset();
    await (force ? this.#leave(worker).stop(stopped) : this.#retire(worker));
    return true;
  }

  get hasSpare(): boolean {
    return this.spare.state.kind === "starting" || this.spare.state.kind === "ready";
  }

  get isIdle(): boolean {
    const { state } = this.current;
    return state.kind === "ready" && state.worker.callsInFlight === 0;
  }

  get isUnused(): boolean {
    return this.current.state.kind === "stopped" && this.workers.size === 0 && this.permits.isFree;
  }

  get lastUsedAtMs(): number {
    return Math.max(0, ...[...this.workers.keys()].map((worker) => worker.lastUsedAtMs));
  }

  /** SLOT2, SLOT3. */
  #wantsSpare({ callsTaken }: Worker): boolean {
    const { times, worker, hasRoom } = this.#options;
    const { state } = this.spare;
    const isFree = state.kind === "stopped" || (state.kind === "backed_off" && state.retryAtMs <= Date.now());
    const isInSecondHalf =
      2 * callsTaken >= worker.maxCalls || 2 * (Date.now() - this.#servesSinceMs) >= times.maxLifeMs;
    return isFree && (worker.keepsSpare || isInSecondHalf) && hasRoom();
  }

  async #endSpare(): Promise<void> {
    const { state } = this.spare;
    await this.#giveUpStart(this.spare, "its room is needed");
    if (state.kind === "ready") await state.worker.retire();
  }

  /** What starts is given up, what is backed off may start again. */
  async #giveUpStart(lane: Lane, reason: string): Promise<void> {
    const { state } = lane;
    lane.state = { kind: "stopped" };
    if (state.kind !== "starting") return;
    state.abort.abort(new Failure("unavailable", reason, { reason: "WORKER_STOPPED" }));
    await state.opened.catch(() => {}); // those who wait for it are told
  }

  /** The lane of a worker, or of a start, that was not given up. */
  #laneOf(it: Worker | Starting): Lane | undefined {
    return [this.current, this.spare].find(
      ({ state }) => state === it || (state.kind === "ready" && state.worker === it),
    );
  }

  /** It gets no further call: the spare takes its place. */
  #leave(worker: Worker): Worker {
    const lane = this.#laneOf(worker);
    if (lane) lane.state = { kind: "stopped" };
    this.#succeed();
    return worker;
  }

  #retire(worker: Worker): Promise<void> {
    return this.#leave(worker).retire();
  }

  #succeed(): void {
    if (this.current.state.kind !== "stopped" || !this.hasSpare) return;
    this.current.state = this.spare.state;
    this.spare.state = { kind: "stopped" };
    this.spare.crashes.reset();
    this.#startServing();
  }

  #start(lane: Lane, file: OfferedFile): void {
    this.starts += 1;
    const abort = new AbortController();
    const onIdle = () => (this.#options.isCrowded() ? void this.giveRoom() : this.#startIdling());
    const opened = callPatience.exit(() => this.#options.open(file, onIdle, abort.signal)); // for later calls, too
    const starting: Starting = { kind: "starting", file, start: this.starts, opened, abort };
    lane.state = starting;
    opened.then(
      (worker) => this.#take(starting, worker),
      (error) => this.#noteFailedStart(starting, error),
    );
  }

  #take(starting: Starting, worker: Worker): void {
    const { file, start } = starting;
    this.workers.set(worker, start);
    const lane = this.#laneOf(starting);
    if (lane) lane.state = { kind: "ready", file, worker };
    else void worker.retire(); // the start was given up a moment ago
    void worker.ended.then(({ wasExpected, ...end }) => {
      this.workers.delete(worker);
      const lane = this.#laneOf(worker) ?? this.current;
      if (lane.state.kind === "ready" && lane.state.worker === worker) lane.state = { kind: "stopped" };
      if (!wasExpected) this.#noteCrash(lane, end, starting);
      this.#succeed();
    });
    if (lane === this.current) this.#startServing();
    this.makeRoom();
  }

  /** A start that was refused for want of room, or given up, says nothing about the file. A failed install has a time of its own. */
  #noteFailedStart(starting: Starting, error: unknown): void {
    const lane = this.#laneOf(starting);
    if (!lane) return;
    lane.state = { kind: "stopped" };
    if (!(error instanceof Failure)) return;
    const { message, metadata, code, cause = message } = error;
    if (metadata?.retry_in_ms !== undefined)
      this.#backOff(lane, Date.now() + Number(metadata.retry_in_ms), { reason: message, detail: message }, starting);
    else if (code === "failed_precondition")
      this.#noteCrash(lane, { reason: message, detail: String(cause) }, starting);
  }

  #noteCrash(lane: Lane, end: Words, starting: Starting): void {
    const retryAtMs = lane.crashes.noteCrash();
    this.#options.onCrash(end.detail, starting.file.digest);
    if (lane.state.kind === "ready" || lane.state.kind === "starting") return; // another has taken its place already
    if (retryAtMs !== undefined) this.#backOff(lane, retryAtMs, end, starting);
  }

  #backOff(lane: Lane, retryAtMs: number, end: Words, { file, start }: Starting): void {
    lane.state = { kind: "backed_off", digest: file.digest, start, retryAtMs, ...end };
    if (lane === this.current) void this.#endSpare();
  }

  /** The current worker's life begins when it can take calls: a spare of the same age would end with it. */
  #startServing(): void {
    this.#startIdling();
    this.#endLife();
    const { state } = this.current;
    if (state.kind !== "ready") return;
    this.#servesSinceMs = Date.now();
    const retire = () => void this.#retire(state.worker);
    this.#endLife = startTimer(this.#options.times.maxLifeMs, retire, { isBackground: true });
  }

  #startIdling(): void {
    this.#endIdling();
    this.#endIdling = startTimer(this.#options.times.idleMs, () => void this.endIdle(), { isBackground: true });
  }
}
