// One thread with one version of a hosted module, and the calls in it.
//
// T1  A call is answered exactly once: by its tool, by the abort of its caller, or by the end of the thread.
// T2  A call that was given up stays in the thread until its tool has ended. When it does not end within the grace, the thread is
//     asked for a sign of life: one that gives none stands in a loop and is ended; one that does is left to its other calls and
//     takes no more.
// T3  A retiring thread takes no call. It ends when the calls that somebody waits for are answered.

import type { Worker } from "node:worker_threads";
import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import type { Answer } from "../../calls/answer.ts";
import { LEVELS, type WrittenLine } from "../../logs/log-line.ts";
import type { HostedCall } from "./host.ts";
import { answerAsk, type InFlightCall, openInFlightCall } from "./in-flight-call.ts";
import type { DescribedTool, FromThread, ToThread } from "./messages.ts";
import { startThread, type ThreadOptions } from "./start-thread.ts";

const SHUTDOWN_MS = 2_000;

export class ModuleThread {
  readonly file: string;
  readonly startedAtMs = Date.now();
  /** Resolves when the thread is gone; `wasExpected` when it was asked to go. */
  readonly ended: Promise<{ reason: string; wasExpected: boolean }>;
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  readonly #calls = new Map<number, InFlightCall>();
  readonly #described = Promise.withResolvers<DescribedTool[]>();
  readonly #initialized = Promise.withResolvers<void>();
  readonly #shutDown = Promise.withResolvers<void>();
  #tools: readonly DescribedTool[] = [];
  #lastId = 0;
  #phase: "open" | "retiring" | "ended" = "open";
  #fault = "";
  #hasSign = Promise.withResolvers<void>();
  #closing: Promise<void> | undefined;

  /** Loads the module, and starts nothing of it yet. Rejects with `failed_precondition` and the reason. */
  static async open(options: ThreadOptions): Promise<ModuleThread> {
    const thread = new ModuleThread(options);
    try {
      thread.#tools = await thread.#started(thread.#described.promise, "was not loaded within");
      return thread;
    } catch (error) {
      await thread.close();
      throw error;
    }
  }

  private constructor(options: ThreadOptions) {
    this.#options = options;
    this.file = options.file;
    this.#worker = startThread(options, (text) => options.onLine(this.#line(LogLevel.INFO, text, "")));
    for (const one of [this.#described, this.#initialized]) one.promise.catch(() => {}); // whoever waits is told
    this.#worker.on("message", (message: FromThread) => this.#take(message));
    this.#worker.on("error", (error) => {
      this.#fault = messageFromUnknown(error);
    });
    this.ended = new Promise((resolve) => this.#worker.once("exit", (code) => resolve(this.#end(code))));
  }

  get tools(): readonly DescribedTool[] {
    return this.#tools;
  }

  get accepts(): boolean {
    return this.#phase === "open";
  }

  get callsInFlight(): number {
    return this.#calls.size;
  }

  /** Rejects with `failed_precondition` when the module's `initialize` throws or takes too long. */
  async initialize(): Promise<void> {
    this.#post({ kind: "initialize" });
    await this.#started(this.#initialized.promise, "was not initialized within");
  }

  /** The answer, or the signal's reason, or `unavailable`, reason WORKER_CRASHED; and when the tool has ended. */
  call(call: HostedCall): { answer: Promise<Answer>; ended: Promise<void> } {
    call.signal.throwIfAborted();
    if (!this.accepts) refuse("unavailable", `the module ${this.file} ends`, { reason: "WORKER_STOPPED" });
    const id = ++this.#lastId;
    const inFlight = openInFlightCall(call);
    this.#calls.set(id, inFlight);
    const onAbort = () => this.#giveUp(id, inFlight);
    call.signal.addEventListener("abort", onAbort, { once: true });
    void inFlight.ended.promise.then(() => call.signal.removeEventListener("abort", onAbort));
    const { tool, callId, argumentsJson, configJson, secretsJson } = call;
    this.#post({ kind: "call", id, tool, callId, argumentsJson, configJson, secretsJson });
    return { answer: inFlight.settle.promise, ended: inFlight.ended.promise };
  }

  /** T3. */
  async retire(): Promise<void> {
    if (this.#phase === "open") this.#phase = "retiring";
    await Promise.allSettled([...this.#calls.values()].map(({ settle }) => settle.promise));
    await this.close();
  }

  /** Ends it, with the module's `shutdown` as far as that comes in time. Calls in flight fail. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#phase === "open") this.#phase = "retiring";
    this.#post({ kind: "shutdown" });
    await comesWithin(this.#tools.length > 0 ? SHUTDOWN_MS : 0, Promise.race([this.#shutDown.promise, this.ended]));
    await this.#worker.terminate();
    await this.ended;
  }

  async #started<T>(promise: Promise<T>, what: string): Promise<T> {
    const { startMs, file } = this.#options;
    if (!(await comesWithin(startMs, promise))) {
      throw new Failure("failed_precondition", `the module ${file} ${what} ${startMs} ms`, {
        reason: "WORKER_START_FAILED",
      });
    }
    return promise;
  }

  #take(message: FromThread): void {
    switch (message.kind) {
      case "described":
        this.#described.resolve(message.tools);
        break;
      case "refused":
        this.#refuseStart(
          new Failure("failed_precondition", this.#options.redact(message.reason), { reason: "WORKER_START_FAILED" }),
        );
        break;
      case "initialized":
        this.#initialized.resolve();
        break;
      case "shut down":
        this.#shutDown.resolve();
        break;
      case "pong":
        this.#hasSign.resolve();
        break;
      case "log":
        this.#log(message);
        break;
      case "progress":
        this.#calls.get(message.id)?.call.listener.onProgress(message);
        break;
      case "ask":
        void answerAsk(this.#options.host, this.#calls.get(message.id), message).then((told) => this.#post(told));
        break;
      case "answer":
        this.#settle(message.id, message.answer);
    }
  }

  #log({ id, level, message, fieldsJson }: Extract<FromThread, { kind: "log" }>): void {
    const line = this.#line(LEVELS.get(level) ?? LogLevel.INFO, message, fieldsJson);
    const inFlight = id === undefined ? undefined : this.#calls.get(id);
    if (inFlight && !inFlight.isGivenUp) inFlight.call.listener.onLine(line);
    else this.#options.onLine(line);
  }

  #refuseStart(failure: Failure): void {
    this.#described.reject(failure);
    this.#initialized.reject(failure);
  }

  #settle(id: number, answer: Answer): void {
    const inFlight = this.#calls.get(id);
    if (!inFlight) return;
    this.#calls.delete(id);
    inFlight.settle.resolve(
      answer.kind === "error" ? { kind: "error", error: this.#options.redact(answer.error) } : answer,
    );
    inFlight.ended.resolve();
  }

  /** T2. */
  #giveUp(id: number, inFlight: InFlightCall): void {
    if (!this.#calls.has(id)) return;
    inFlight.isGivenUp = true;
    inFlight.settle.reject(inFlight.call.signal.reason);
    this.#post({ kind: "cancel", id, reason: messageFromUnknown(inFlight.call.signal.reason) });
    void this.#watchEnding(inFlight);
  }

  async #watchEnding({ ended, call }: InFlightCall): Promise<void> {
    const { graceMs, file, onLine } = this.#options;
    if (await comesWithin(graceMs, ended.promise)) return;
    this.#hasSign = Promise.withResolvers();
    this.#post({ kind: "ping" });
    const isAlive = await comesWithin(graceMs, Promise.race([this.#hasSign.promise, this.ended]));
    if (isAlive) {
      onLine(this.#line(LogLevel.WARN, `${call.tool} goes on after its time: ${file} is loaded again`, ""));
      return this.retire();
    }
    this.#fault = `${call.tool} did not return`;
    await this.#worker.terminate();
  }

  #end(code: number): { reason: string; wasExpected: boolean } {
    const wasExpected = this.#phase === "retiring" && this.#fault === "";
    this.#phase = "ended";
    const reason = this.#options.redact(this.#fault || `it ended with ${code}`);
    const failure = new Failure("unavailable", `the module ${this.file} was ended: ${reason}`, {
      reason: "WORKER_CRASHED",
    });
    this.#refuseStart(new Failure("failed_precondition", failure.message, { reason: "WORKER_START_FAILED" }));
    for (const { settle, ended } of this.#calls.values()) {
      settle.promise.catch(() => {}); // of a call that was given up nobody waits
      settle.reject(failure);
      ended.resolve();
    }
    this.#calls.clear();
    return { reason, wasExpected };
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #line(level: WrittenLine["level"], message: string, fieldsJson: string): WrittenLine {
    const { redact } = this.#options;
    return { timeMs: Date.now(), level, message: redact(message), fieldsJson: redact(fieldsJson) };
  }
}
