// The hosted modules of a directory: each in a process of its own, loaded again when it changes, started again when it ended.
//
// The process is confined as those of workers are, and has nothing of the service: no variable, key or file of it, and no
// connection but the one to us. An endless loop, an exception that nobody caught, `process.exit`, a full heap or native code that
// crashes end it and nothing else. Its calls get `unavailable`, reason `WORKER_CRASHED`; the next call starts it again; one that
// keeps ending is backed off.
//
// HOSTED1  The registry holds each tool name once. A module that brings a name of another one is refused, with both names; the one that
//     was there first stays. A module that is refused is offered by nobody, hides no other, and is tried again after a wait that
//     grows: what it needs may have been away. One that was offered and only fails to start again stays offered, and is backed off
//     like one that keeps ending.
// HOSTED2  A module that changes, or that imports a file of the directory that changes, is loaded again: the old process finishes its
//     calls, then `shutdown` runs. `StopWorker` does the same; with force, it fails the calls. The next call starts the module again.
// HOSTED3  If a call's time is over, or its caller has left, its `signal` aborts. What then happens to the process: `worker.ts`, WORKER2.
// HOSTED4  `call.registry` lists and calls the agent's tools of every kind through the router, under the agent's policy, within what the
//     run allows (`allowed_tools`) and has left (`max_tool_calls`, tokens, cost, deadline). `call.model.generate` is a run of one turn
//     without tools, in a session of its own that is closed afterwards, by the agent's own model or another agent's. Both act for
//     the session's principal. What they use is reported with the call's result, and counts in the run's limits.
// HOSTED5  A module that does not initialize is not kept before its first call: what it offers is known, and nothing is lost with it.
// HOSTED6  `call.config` and `call.secrets` are what the entry gives. The environment is that of a Python worker.

import { readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { createChanges } from "#runtime/collections/changes.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { startTimer } from "#runtime/time/timer.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Answer } from "../calls/answer.ts";
import { openDirectoryWatch } from "../files/directory-watch.ts";
import { isModuleFileName, sourceFromFile } from "../files/tool-file.ts";
import { type BackoffTimes, refuseBackedOff } from "../pool/crash-backoff.ts";
import type { Permits } from "../pool/permits.ts";
import type { CallListener } from "../worker/call-in-flight.ts";
import type { CallRequest } from "../worker/frames.ts";
import type { Worker } from "../worker/worker.ts";
import {
  createModuleSlot,
  fileFromSlot,
  type ModuleFile,
  type ModuleSlot,
  reasonWithWayOut,
  startOfModule,
} from "./module-slot.ts";
import { type ModuleOptions, type ModuleProcess, openModule } from "./process/open-module.ts";
import { HostedRegistry } from "./registry.ts";

interface HostedModulesOptions extends Omit<ModuleOptions, "file" | "path" | "onLine">, BackoffTimes {
  directory: string;
  /** One for each call. */
  permits: Permits;
  onLine: (source: string, line: Parameters<ModuleOptions["onLine"]>[0]) => void;
  logger: Pick<Logger, "info" | "warn">;
}

/** What goes with the request of a call. */
interface HostedCall {
  listener: CallListener;
  signal: AbortSignal;
  /** Called when the module gets it. */
  onBegin: () => void;
}

/** How long the service's start waits for modules; those that take longer are offered when they are there. */
const START_MS = 5_000;
export async function openHostedModules(options: HostedModulesOptions): Promise<HostedModules> {
  const modules = new HostedModules(options);
  await modules.open();
  return modules;
}

export class HostedModules implements AsyncDisposable {
  readonly registry = new HostedRegistry();
  readonly #options: HostedModulesOptions;
  readonly #slots = new Map<string, ModuleSlot>();
  readonly changes = createChanges();
  readonly #leaving = new Set<Promise<void>>();
  #watch: AsyncDisposable | undefined;
  #isClosed = false;

  constructor(options: HostedModulesOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const { directory, logger } = this.#options;
    const isWatched = (path: string) => /\.(m?[jt]s|json)$/.test(path); // whatever a module may be made of
    const onChange = (paths: readonly string[]) => void this.#reload(paths);
    this.#watch = await openDirectoryWatch({ directory, isWatched, logger, onChange });
    const loads = (await readdir(directory))
      .filter(isModuleFileName)
      .sort()
      .map((file) => this.#load(file));
    await comesWithin(START_MS, Promise.all(loads));
  }

  files(): ModuleFile[] {
    const slots = [...this.#slots.values()].sort((a, b) => (a.file < b.file ? -1 : 1));
    return slots.map((slot) => fileFromSlot(slot));
  }

  find(file: string): ModuleFile | undefined {
    const slot = this.#slots.get(file);
    return slot && fileFromSlot(slot);
  }

  /**
   * Calls a tool of a file. Rejects with a Failure: `not_found`, `failed_precondition`, and `unavailable` with reason
   * WORKER_BACKED_OFF mean that nothing was started, reason DEADLINE_EXCEEDED or WORKER_CRASHED that the outcome is unknown.
   */
  async call(file: string, request: CallRequest, { listener, signal, onBegin }: HostedCall): Promise<Answer> {
    this.#slotOf(file);
    const release = await this.#options.permits.acquire(signal);
    let running: ReturnType<Worker["call"]> | undefined;
    try {
      const slot = this.#slotOf(file); // it may have been removed while the call waited
      const { tools, worker } = await unlessAborted(this.#processOf(slot), signal);
      if (!tools.some(({ name }) => name === request.function))
        refuse("not_found", `${file} offers no tool ${request.function}`, { reason: "TOOL_NOT_FOUND" });
      running = worker.call(request, listener, signal);
      onBegin();
      void running.ended.then(release);
      slot.callsTotal += 1;
      const answer = await running.answer;
      slot.crashes.reset();
      return answer;
    } finally {
      if (!running) release();
    }
  }

  /** Ends a module's process, after its calls unless it is forced; the next call starts another. Gives whether one took calls. */
  async stop(isWanted: (worker: { file: string; start: number }) => boolean, force: boolean): Promise<boolean> {
    const slot = this.#slots
      .values()
      .find((slot) => isWanted({ file: slot.file, start: startOfModule(fileFromSlot(slot)) }));
    await slot?.loading;
    if (slot?.state.kind !== "ready" || !slot.state.process.worker.accepts) return false;
    if (force) await slot.state.process.close();
    else this.#letGo(slot.state.process);
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#watch?.[Symbol.asyncDispose]();
    for (const { endRetry } of this.#slots.values()) endRetry();
    await Promise.all([...this.#slots.values()].map(({ loading }) => loading));
    await Promise.all([this.registry.shutdown(), ...this.#leaving]);
  }

  #slotOf(file: string): ModuleSlot {
    const slot = this.#isClosed ? undefined : this.#slots.get(file);
    const words = `there is no file ${file} in the directory of hosted modules`;
    return slot ?? refuse("not_found", words, { reason: "WORKER_NOT_FOUND" });
  }

  /** The process that takes calls; started again when it ended. */
  async #processOf(slot: ModuleSlot): Promise<ModuleProcess> {
    for (;;) {
      const { loading } = slot;
      await loading;
      if (slot.loading !== loading) continue;
      const { state } = slot;
      if (state.kind === "refused")
        refuse("failed_precondition", `${slot.file} is refused: ${state.reason}`, { reason: "WORKER_INVALID" });
      if (state.kind === "ready" && state.process.worker.accepts) return state.process;
      if (state.kind === "ready" && state.process.worker.isLost) await state.process.worker.ended;
      const standing = this.#slotOf(slot.file);
      if (standing !== slot) return this.#processOf(standing); // removed, and there again
      refuseBackedOff(`the module ${slot.file}`, slot.retryAtMs);
      slot.loading = this.#replace(slot, true);
    }
  }

  /** A change of what no module is itself may be a change of each: all are loaded again. Any other may be what a refused one lacks. */
  async #reload(paths: readonly string[]): Promise<void> {
    const isOfAll = paths.some((path) => !isModuleFileName(path));
    const touched = this.#slots.values().filter(({ state }) => isOfAll || state.kind === "refused");
    const named = [...paths.filter(isModuleFileName), ...touched.map(({ file }) => file)];
    const there = new Set(await readdir(this.#options.directory).catch(() => [])); // gone: so are its modules
    for (const file of [...new Set(named)].sort()) {
      this.#slots.get(file)?.backoff.reset();
      if (there.has(file)) void this.#load(file);
      else this.#remove(file);
    }
  }

  #load(file: string): Promise<void> {
    const slot = this.#slots.get(file) ?? createModuleSlot(file, this.#options);
    this.#slots.set(file, slot);
    slot.crashes.reset();
    slot.loading = slot.loading.then(() => this.#replace(slot)).then(() => this.#rest(slot));
    return slot.loading;
  }

  /** HOSTED5. */
  #rest({ state }: ModuleSlot): void {
    if (state.kind === "ready" && !state.process.initializes) this.#letGo(state.process);
  }

  #remove(file: string): void {
    const slot = this.#slots.get(file);
    this.#slots.delete(file);
    slot?.endRetry();
    if (slot) void slot.loading.then(() => this.#leave(slot));
    this.changes.tell();
  }

  #stands(slot: ModuleSlot): boolean {
    return !this.#isClosed && this.#slots.get(slot.file) === slot;
  }

  /** Loads what the file holds, and lets what was there before finish what it has. Never rejects. */
  async #replace(slot: ModuleSlot, isRestart = false): Promise<void> {
    if (!this.#stands(slot)) return;
    slot.endRetry();
    const { logger } = this.#options;
    try {
      const process = await this.#open(slot);
      const before = slot.state;
      await this.registry.initialize(process).catch(async (error: unknown) => {
        await process.close();
        throw error;
      });
      slot.state = { kind: "ready", process };
      if (!isRestart) slot.backoff.reset();
      if (before.kind === "ready") this.#letGo(before.process);
      logger.info({ file: slot.file }, `${slot.file} offers ${process.tools.map(({ name }) => name).join(", ")}`);
    } catch (error) {
      const reason = reasonWithWayOut(messageFromUnknown(error));
      if (isRestart) return this.#noteCrash(slot, reason); // what it offers is known, and has not changed
      this.#leave(slot);
      const isNews = slot.state.kind !== "refused" || slot.state.reason !== reason;
      const detail = error instanceof Failure && error.cause !== undefined ? `\n${error.cause}` : "";
      if (isNews) logger.warn({ file: slot.file }, `${slot.file} is refused: ${reason}${detail}`);
      slot.state = { kind: "refused", reason };
      if (this.#stands(slot)) slot.endRetry = startTimer(slot.backoff.next(), () => void this.#load(slot.file));
    }
    this.changes.tell();
  }

  async #open(slot: ModuleSlot): Promise<ModuleProcess> {
    const { directory, onLine } = this.#options;
    const path = join(directory, slot.file);
    const [root, target] = await Promise.all([realpath(directory), realpath(path)]);
    if (!target.startsWith(root + sep))
      refuse("failed_precondition", "it is a link that leads out of the directory", { reason: "WORKER_INVALID" });
    const source = sourceFromFile(slot.file);
    const process = await openModule({
      ...this.#options,
      file: slot.file,
      path: target,
      onLine: (line) => onLine(source, line),
    });
    void process.worker.ended.then(({ detail, wasExpected }) => {
      if (!wasExpected) this.#noteCrash(slot, detail);
    });
    return process;
  }

  #noteCrash(slot: ModuleSlot, reason: string): void {
    slot.retryAtMs = slot.crashes.noteCrash() ?? 0;
    this.#options.logger.warn({ file: slot.file }, `${slot.file} failed: ${reason}`);
  }

  #leave(slot: ModuleSlot): void {
    if (slot.state.kind !== "ready") return;
    this.registry.unregister(slot.state.process);
    this.#letGo(slot.state.process);
  }

  #letGo(process: ModuleProcess): void {
    const left = process.worker.retire();
    this.#leaving.add(left);
    void left.finally(() => this.#leaving.delete(left));
  }
}
