import { Failure, messageFromUnknown, type ReceivedReason, refuse } from "#runtime/failure/failure.ts";
import { MovingDeadline } from "#runtime/time/deadline/moving-deadline.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Answer } from "../calls/answer.ts";
import type { PoolTimes, WorkerPoolConfig } from "../config.ts";
import type { OfferedFile, ToolFile } from "../files/tool-file.ts";
import type { WrittenLine } from "../logs/log-line.ts";
import type { CallListener } from "../worker/call-in-flight.ts";
import type { CallRequest } from "../worker/frames.ts";
import type { OpenWorkerOptions } from "../worker/open-worker.ts";
import type { Worker } from "../worker/worker.ts";
import { createLine, createPermits, type Line, type Permits } from "./permits.ts";
import { type SlotOptions, SourceSlot } from "./source-slot.ts";

export interface PoolCall extends CallRequest {
  source: string;
  file: string;
  /** In whose name; empty for nobody's. */
  principal: string;
  /** How long it may take; undefined for the pool's own time. Installing and starting do not count. */
  timeoutMs: number | undefined;
  signal: AbortSignal;
  listener: CallListener;
}

export interface PoolOptions extends Pick<WorkerPoolConfig, "pool"> {
  worker: SlotOptions["worker"];
  times: SlotOptions["times"] & Pick<PoolTimes, "callMs">;
  find: (file: string) => ToolFile | undefined | Promise<ToolFile | undefined>;
  /** Tells what is done while a file's dependencies are installed, until the function that it gives is called. */
  watchInstall?: (file: string, onLine: (line: string) => void) => () => void;
  /** Installs what a file needs, and starts a worker for it. */
  start: (file: OfferedFile, parts: Pick<OpenWorkerOptions, "onLine" | "onIdle" | "signal">) => Promise<Worker>;
  /** Lines of a worker that belong to no call. */
  onLine: (source: string, line: WrittenLine) => void;
  /** A worker crashed, or a version of its file cannot be started. */
  onCrash: (at: { source: string; file: string }, detail: string, digest: string) => void;
}

/** All workers of this process, one for each source that was called lately. */
export class Pool implements AsyncDisposable {
  readonly #options: PoolOptions;
  readonly #slots = new Map<string, SourceSlot>();
  readonly #line: Line;
  readonly #calls: Permits;
  readonly #processes: Permits;
  #isClosed = false;

  constructor(options: PoolOptions) {
    const { calls, workers } = options.pool;
    this.#options = options;
    this.#line = createLine(options.pool);
    this.#calls = createPermits(calls, "places of the pool", this.#line);
    this.#processes = createPermits(workers, "workers of the pool", this.#line);
  }

  slots(): SourceSlot[] {
    return [...this.#slots.values()];
  }

  /**
   * Runs a function. Rejects with a Failure: `not_found`, `failed_precondition` and `resource_exhausted` mean that nothing was
   * started, the reasons WORKER_CRASHED and DEADLINE_EXCEEDED that the outcome is unknown.
   */
  async call(call: PoolCall): Promise<Answer> {
    await this.#offered(call, call.signal);
    const slot = this.slotOf(call.source, call.file);
    const { timeoutMs = this.#options.times.callMs } = call;
    const reason = () => timeUp(call, ", while it waited for its place", "CALL_NOT_STARTED");
    using time = new MovingDeadline({ deadlineMs: Date.now() + timeoutMs, reason }, call.signal);
    const release = await slot.permits.acquire(time.signal, call.principal);
    return await this.#callOn(slot, call, time, release);
  }

  /** Whether the source has a worker, however busy, or one that starts. */
  isWarm(source: string, file: string): boolean {
    const kind = this.#slots.get(JSON.stringify([source, file]))?.current.state.kind;
    return kind === "ready" || kind === "starting";
  }

  /** Whether a worker of the source takes one more call of the principal at once. */
  hasRoom(source: string, file: string, principal: string): boolean {
    const slot = this.#slots.get(JSON.stringify([source, file]));
    const state = slot?.current.state;
    if (slot === undefined || state?.kind !== "ready" || !state.worker.accepts) return false;
    return !slot.permits.isFullFor(principal) && !this.#calls.isFullFor(principal);
  }

  /** Files that changed: their workers finish what they have, and the next call starts the other version. */
  renew(files: readonly string[]): void {
    for (const slot of this.#slots.values()) if (files.includes(slot.file)) void slot.renew();
  }

  /** Ends a worker, by its file and its start; gives whether there is one. */
  async stop(isWanted: (worker: { file: string; start: number }) => boolean, force: boolean): Promise<boolean> {
    for (const slot of this.slots()) {
      const ahead = [slot.current, slot.spare].flatMap(({ state }) => ("start" in state ? state.start : []));
      const start = [...slot.workers.values(), ...ahead].find((start) => isWanted({ file: slot.file, start }));
      if (start !== undefined) return slot.stopStart(start, force);
    }
    return false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true; // those who wait start nothing more
    await Promise.all(this.slots().map((slot) => slot.stop("the pool stops")));
  }

  async #callOn(slot: SourceSlot, call: PoolCall, time: MovingDeadline, release: () => void): Promise<Answer> {
    const taken = [release];
    const free = () => {
      for (const giveBack of taken) giveBack();
    };
    const most = MOST_ON_PLACE * this.#options.worker.calls;
    let isRunning = false;
    try {
      let worker = await this.#readyWorker(slot, call, time);
      taken.push(await this.#calls.acquire(time.signal, call.principal));
      while (!worker.accepts) worker = await this.#readyWorker(slot, call, time);
      const onAsk: CallListener["onAsk"] = (...asked) => {
        if (worker.callsInFlight <= most) free(); // for good: what it asks for may need them, and others do not wait for what it does then
        return call.listener.onAsk(...asked);
      };
      const running = worker.call(call, { ...call.listener, onAsk }, time.signal); // refused, it leaves the worker idle as it was
      slot.noteCall(worker);
      time.reason = () => timeUp(call, "", "DEADLINE_EXCEEDED"); // from here on nobody knows what was done
      isRunning = true;
      void running.ended.then(free);
      const answer = await running.answer;
      slot.noteAnswer();
      return answer;
    } finally {
      if (!isRunning) {
        free();
        slot.makeRoom();
      }
    }
  }

  async #readyWorker(slot: SourceSlot, call: PoolCall, time: MovingDeadline): Promise<Worker> {
    const file = await this.#offered(call, time.signal); // which may be another one by now
    const { state } = slot.current;
    if (state.kind === "ready" && state.worker.accepts && state.worker.digest === file.digest) return state.worker;
    using _ = time.pause();
    const tell = (message: string) => call.listener.onProgress({ done: 0, total: 0, message });
    const endWatching = this.#options.watchInstall?.(file.file, tell);
    try {
      return await unlessAborted(slot.worker(file), time.signal);
    } finally {
      endWatching?.();
    }
  }

  async #offered({ file: fileName, function: tool }: PoolCall, signal: AbortSignal): Promise<OfferedFile> {
    const file = await unlessAborted(Promise.resolve(this.#options.find(fileName)), signal);
    const missing = `there is no file ${fileName} in the directory of workers or hosted modules`;
    if (!file) refuse("not_found", missing, { reason: "WORKER_NOT_FOUND" });
    if (file.kind === "refused")
      refuse("failed_precondition", `${fileName} is refused: ${file.reason}`, { reason: "WORKER_INVALID" });
    if (!file.functions.some(({ name }) => name === tool))
      refuse("not_found", `${fileName} offers no function ${tool}`, { reason: "TOOL_NOT_FOUND" });
    return file;
  }

  /** The slot of a source, made if there is none. */
  slotOf(source: string, file: string): SourceSlot {
    const key = JSON.stringify([source, file]);
    const found = this.#slots.get(key);
    if (found) return found;
    if (this.#slots.size >= MAX_IDLE_SLOTS) this.#forgetUnused();
    const { worker, times, onCrash } = this.#options;
    const slot: SourceSlot = new SourceSlot({
      source,
      file,
      worker,
      line: this.#line,
      times,
      open: (version, onIdle, signal) => this.#open(source, version, onIdle, signal),
      onCrash: (detail, digest) => onCrash({ source, file }, detail, digest),
      isCrowded: () => this.#processes.hasWaiting,
      hasRoom: () => !this.#processes.hasWaiting && !this.#processes.isFullFor(""),
    });
    this.#slots.set(key, slot);
    return slot;
  }

  #forgetUnused(): void {
    for (const [key, slot] of this.#slots) if (slot.isUnused) this.#slots.delete(key);
  }

  async #open(source: string, file: OfferedFile, onIdle: () => void, signal: AbortSignal): Promise<Worker> {
    if (this.#isClosed) refuse("unavailable", "the pool stops", { reason: "WORKER_STOPPED" });
    const release = await this.#room(signal);
    try {
      const onLine = (line: WrittenLine) => this.#options.onLine(source, line);
      const worker = await this.#options.start(file, { onLine, onIdle, signal });
      void worker.ended.then(release);
      return worker;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Room for one more process: of a worker that ends, else of a spare, else of the idle worker that was used longest ago. */
  async #room(signal: AbortSignal): Promise<() => void> {
    while (this.#processes.isFull) {
      const workers = this.slots().flatMap((slot) => [...slot.workers.keys()]);
      const ending = workers.find(({ accepts, callsInFlight }) => !accepts && callsInFlight === 0);
      const idle = this.slots().filter((slot) => slot.hasSpare || slot.isIdle);
      idle.sort((a, b) => Number(b.hasSpare) - Number(a.hasSpare) || a.lastUsedAtMs - b.lastUsedAtMs);
      const ended = ending?.ended ?? idle[0]?.giveRoom();
      if (ended === undefined) break;
      await unlessAborted<unknown>(ended, signal);
    }
    using timeout = timeoutSignal(this.#options.times.callMs);
    using ending = openEnding(signal, timeout);
    try {
      return await this.#processes.acquire(ending.signal);
    } catch (error) {
      if (!timeout.aborted || error instanceof Failure) throw error;
      refuse("resource_exhausted", `no worker of the pool ended in time: ${messageFromUnknown(error)}`, {
        reason: "WORKER_POOL_FULL",
      });
    }
  }
}

const MAX_IDLE_SLOTS = 256;
/** Where calls wait for calls in a circle, or many wait for one slow tool, a worker has but so many times its own. */
const MOST_ON_PLACE = 16;

function timeUp({ function: name }: PoolCall, when: string, reason: ReceivedReason): Failure {
  return new Failure("deadline_exceeded", `${name} timed out${when}`, { reason });
}
