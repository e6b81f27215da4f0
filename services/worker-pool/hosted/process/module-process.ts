// One process with one version of a hosted module, and the calls in it.
//
// MODULE1  A call is answered exactly once: by its tool, by the abort of its caller, or by the end of the process.
// MODULE2  A call that was given up stays in the process until its tool has ended. When it does not end within the grace, the process
//     is asked for a sign of life: one that gives none stands in a loop and is ended; one that does is left to its other calls
//     and takes no more.
// MODULE3  A retiring process takes no call. It ends when the calls that somebody waits for are answered.
// MODULE4  What the process says is not believed: a line that is no message ends it (`parse-message.ts`).

import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { ChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { ChildExit } from "#runtime/lifecycle/child-process/exit.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import type { Answer } from "../../calls/answer.ts";
import { requireFit } from "../../calls/json-line.ts";
import { LEVELS, type WrittenLine } from "../../logs/log-line.ts";
import { createLastWords } from "../../worker/last-words.ts";
import type { HostedCall } from "./host.ts";
import { answerAsk, type InFlightCall, lineFromCall, openInFlightCall } from "./in-flight-call.ts";
import type { DescribedTool, FromModule, ToModule } from "./messages.ts";
import { parseMessage } from "./parse-message.ts";
import { type ProcessOptions, startProcess } from "./start-process.ts";

const SHUTDOWN_MS = 2_000;

type Described = Extract<FromModule, { kind: "described" }>;

export class ModuleProcess {
  readonly file: string;
  readonly startedAtMs = Date.now();
  /** Resolves when the process is gone; `wasExpected` when it was asked to go. */
  readonly ended: Promise<{ reason: string; wasExpected: boolean }>;
  tools: readonly DescribedTool[] = [];
  /** Whether the module has something to do before its first call. */
  initializes = false;
  readonly #options: ProcessOptions;
  readonly #child: ChildProcess;
  readonly #lastWords = createLastWords();
  readonly #calls = new Map<number, InFlightCall>();
  readonly #described = Promise.withResolvers<Described>();
  readonly #initialized = Promise.withResolvers<void>();
  readonly #shutDown = Promise.withResolvers<void>();
  #lastId = 0;
  #phase: "open" | "retiring" | "ended" = "open";
  #fault = "";
  #fatal = "";
  /** The next sign of life, for all who asked for one. */
  #sign = Promise.withResolvers<void>();
  #closing: Promise<void> | undefined;

  /** Loads the module, and starts nothing of it yet. Rejects with `failed_precondition` and the reason. */
  static async open(options: ProcessOptions): Promise<ModuleProcess> {
    const opened: { module?: ModuleProcess } = {};
    const child = await startProcess(options, (text) => opened.module?.print(text));
    const module = new ModuleProcess(options, child);
    opened.module = module;
    try {
      const { tools, initializes } = await module.#started(module.#described.promise, "was not loaded within");
      module.tools = tools;
      module.initializes = initializes;
      return module;
    } catch (error) {
      await module.close();
      throw error;
    }
  }

  private constructor(options: ProcessOptions, child: ChildProcess) {
    this.#options = options;
    this.file = options.file;
    this.#child = child;
    for (const one of [this.#described, this.#initialized]) one.promise.catch(() => {}); // whoever waits is told
    this.ended = this.#run();
  }

  /** Of what runs the module; of the process around it if it is confined. */
  get pid(): number {
    return this.#child.pid;
  }

  get accepts(): boolean {
    return this.#phase === "open" && !this.isLost;
  }

  /** It has exited or is killed for a fault, and its calls are told in a moment. */
  get isLost(): boolean {
    return this.#phase === "open" && (this.#child.hasExited || this.#fault !== "");
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
    const line = lineFromCall(id, call);
    requireFit(line, this.#options.maxLineBytes);
    const inFlight = openInFlightCall(call);
    this.#calls.set(id, inFlight);
    const onAbort = () => this.#giveUp(id, inFlight);
    call.signal.addEventListener("abort", onAbort, { once: true });
    void inFlight.ended.promise.then(() => call.signal.removeEventListener("abort", onAbort));
    this.#write(line);
    return { answer: inFlight.settle.promise, ended: inFlight.ended.promise };
  }

  /** MODULE3. */
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
    await comesWithin(this.tools.length > 0 ? SHUTDOWN_MS : 0, Promise.race([this.#shutDown.promise, this.ended]));
    await this.#child.kill();
    await this.ended;
  }

  async #started<T>(promise: Promise<T>, what: string): Promise<T> {
    const { startMs, file } = this.#options;
    if (!(await comesWithin(startMs, promise)))
      refuse("failed_precondition", `the module ${file} ${what} ${startMs} ms`, { reason: "WORKER_START_FAILED" });
    return promise;
  }

  async #run(): Promise<{ reason: string; wasExpected: boolean }> {
    try {
      for await (const line of this.#child.lines()) this.#read(line);
    } catch (error) {
      this.#failProtocol(messageFromUnknown(error));
    }
    return this.#end(await this.#child.exited);
  }

  /** MODULE4. */
  #read(line: string): void {
    const message = parseMessage(line);
    if (message) this.#take(message);
    else this.#failProtocol(`it wrote a line that is no message: ${line.slice(0, 200)}`);
  }

  #failProtocol(reason: string): void {
    this.#fault ||= `it broke the protocol: ${reason}`;
    void this.#child.kill();
  }

  /** To be given to the process as what reads what it prints. */
  print(text: string): void {
    if (text.startsWith("FATAL ERROR: ")) this.#fatal = text; // as Node says that its heap is full, in the midst of much else
    const line = this.#line(LogLevel.INFO, text, "");
    this.#lastWords.add(line.message);
    this.#options.onLine(line);
  }

  #take(message: FromModule): void {
    switch (message.kind) {
      case "described":
        this.#described.resolve(message);
        break;
      case "refused":
        this.#refuseStart(this.#options.redact(message.reason), this.#options.redact(message.detail));
        break;
      case "fault":
        this.#fault ||= message.reason;
        break;
      case "initialized":
        this.#initialized.resolve();
        break;
      case "shut down":
        this.#shutDown.resolve();
        break;
      case "pong":
        this.#sign.resolve();
        this.#sign = Promise.withResolvers();
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

  #log({ id, level, message, fieldsJson }: Extract<FromModule, { kind: "log" }>): void {
    const line = this.#line(LEVELS.get(level) ?? LogLevel.INFO, message, fieldsJson);
    const inFlight = id === undefined ? undefined : this.#calls.get(id);
    if (inFlight && !inFlight.isGivenUp) inFlight.call.listener.onLine(line);
    else this.#options.onLine(line);
  }

  #refuseStart(words: string, cause?: string): void {
    const failure = new Failure("failed_precondition", words, { reason: "WORKER_START_FAILED", cause });
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

  /** MODULE2. */
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
    this.#post({ kind: "ping" });
    const isAlive = await comesWithin(graceMs, Promise.race([this.#sign.promise, this.ended]));
    if (isAlive) {
      onLine(this.#line(LogLevel.WARN, `${call.tool} goes on after its time: ${file} is loaded again`, ""));
      return this.retire();
    }
    this.#fault = `${call.tool} did not return`;
    await this.#child.kill();
  }

  #end(exit: ChildExit): { reason: string; wasExpected: boolean } {
    const wasExpected = this.#phase === "retiring" && this.#fault === "";
    this.#phase = "ended";
    const reason = this.#options.redact(this.#fault || this.#fatal || `it ${this.#lastWords.textFromExit(exit)}`);
    const failure = new Failure("unavailable", `the module ${this.file} was ended: ${reason}`, {
      reason: "WORKER_CRASHED",
    });
    this.#refuseStart(failure.message);
    for (const { settle, ended } of this.#calls.values()) {
      settle.promise.catch(() => {}); // of a call that was given up nobody waits
      settle.reject(failure);
      ended.resolve();
    }
    this.#calls.clear();
    return { reason, wasExpected };
  }

  #post(message: ToModule): void {
    this.#write(`${JSON.stringify(message)}\n`);
  }

  #write(line: string): void {
    this.#child.write(line).catch(() => {}); // a process that takes no input is about to exit, which fails its calls
  }

  #line(level: WrittenLine["level"], message: string, fieldsJson: string): WrittenLine {
    const { redact } = this.#options;
    return { timeMs: Date.now(), level, message: redact(message), fieldsJson: redact(fieldsJson) };
  }
}
