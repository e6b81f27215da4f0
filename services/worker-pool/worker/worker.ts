// One process of a worker or of a hosted module, and the calls on it.
//
// WORKER1  A call is answered exactly once: by its own frame, by the abort of its caller, or by the end of the process.
// WORKER2  A call that its caller gave up stays on the worker until its function has ended; one that does not end within the grace
//     makes the worker retire, since nothing else can free its thread, or stop the module. A module that for twice the grace says nothing,
//     not even that it heard of that, stands in a loop: it is ended, with the other calls in it.
// WORKER3  A retiring worker takes no call. It ends when the calls that somebody waits for are answered.
// WORKER4  An answer is held back until the log lines that were written before it are read, so that none comes after the result.
// WORKER5  Of a worker that broke the protocol nothing counts any more: a line that it spoiled may have been another call's answer.
// WORKER6  What a crash tells a call is its own: what other calls wrote, and what cannot be told whose it is, only operators see.

import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { shortened } from "#runtime/content/shortened.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { ChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { Answer } from "../calls/answer.ts";
import { requireFit } from "../calls/json-line.ts";
import { isLogLine, type WrittenLine, writtenLineFromText } from "../logs/log-line.ts";
import { CallInFlight, type CallListener } from "./call-in-flight.ts";
import {
  type CallRequest,
  type Frame,
  lineFromCancel,
  lineFromReply,
  lineFromRequest,
  PROTOCOL,
  parseFrame,
} from "./frames.ts";
import { createLastWords, type LastWords } from "./last-words.ts";

export type Ready = Extract<Frame, { kind: "ready" }>;

/** Progress is for a line on somebody's screen. */
const PROGRESS_LENGTH = 1_000;

interface WorkerEnd {
  /** For whoever calls. */
  reason: string;
  /** With what the worker wrote, whosesoever it is: for operators. */
  detail: string;
  /** Whether it was ended from here: one that was only to end after its calls may crash in them. */
  wasExpected: boolean;
}

export interface WorkerOptions {
  child: ChildProcess;
  /** In words: `the worker of a.py`. */
  name: string;
  /** Of the file that it runs, where it may run an older version. */
  digest?: string;
  /** What is said before the reason of one that cannot be loaded. */
  unloaded: string;
  /** Whether the process is in a namespace of processes, where its number is another one than here. */
  hasOwnIds: boolean;
  /** It has something to do before it ends, for which it is given time; says that its heap is full; and answers a cancel at once. */
  isModule?: boolean;
  maxLineBytes: number;
  cancelGraceMs: number;
  redact: (text: string) => string;
  /** Lines that belong to no call in flight. */
  onLine: (line: WrittenLine) => void;
  onIdle?: () => void;
}

export class Worker {
  readonly digest: string;
  readonly startedAtMs = Date.now();
  lastUsedAtMs = Date.now();
  /** Of the Python process; of the one around it if it is confined. */
  pid: number;
  /** Resolves when the process is gone. */
  readonly ended: Promise<WorkerEnd>;
  readonly #ready = Promise.withResolvers<Ready>();
  readonly ready = this.#ready.promise;
  readonly #options: WorkerOptions;
  readonly #child: ChildProcess;
  readonly #calls = new Map<number, CallInFlight>();
  /** Since the start, or since the first of the calls in flight began: what earlier ones said explains no crash. */
  #lastWords = createLastWords();
  #lastId = 0;
  #phase: "open" | "retiring" | "ending" | "ended" = "open";
  /** Why it is ended before its time, the first reason; only operators see the detail. */
  #fault: { reason: string; detail: string } | undefined;
  /** What its runtime has said last of its end. */
  #fatal = "";
  #brokeProtocol = false;
  #isReady = false;
  #heardLines = 0;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#child = options.child;
    this.digest = options.digest ?? "";
    this.pid = options.child.pid;
    this.ready.catch(() => {}); // whoever starts a worker waits for it; without a waiter nobody misses it
    this.ended = this.#run();
  }

  get accepts(): boolean {
    return this.#phase === "open" && !this.isLost;
  }

  /** The process has crashed or is killed for a fault, and its calls are told in a moment. */
  get isLost(): boolean {
    return this.#phase === "open" && (this.#child.hasExited || this.#fault !== undefined);
  }

  /** How many it was given in its life. */
  get callsTaken(): number {
    return this.#lastId;
  }

  get callsInFlight(): number {
    return this.#calls.size;
  }

  call(request: CallRequest, listener: CallListener, signal: AbortSignal): Pick<CallInFlight, "answer" | "ended"> {
    signal.throwIfAborted();
    if (!this.accepts) refuse("unavailable", `${this.#options.name} ends`, { reason: "WORKER_STOPPED" });
    const id = this.#lastId + 1;
    const line = lineFromRequest(id, request);
    requireFit(line, this.#options.maxLineBytes);
    this.#lastId = id;
    const call = new CallInFlight(request.function, listener);
    const onAbort = () => this.#giveUp(id, signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    void call.ended.then(() => signal.removeEventListener("abort", onAbort));
    if (this.#calls.size === 0 && id > 1) this.#lastWords = createLastWords();
    this.#calls.set(id, call);
    this.lastUsedAtMs = Date.now();
    this.#write(line);
    return call;
  }

  /** WORKER3. Resolves when the process is gone. */
  async retire(): Promise<void> {
    if (this.accepts) this.#phase = "retiring";
    this.#endIfDrained();
    await this.ended;
  }

  /** Ends the process at once; its calls fail with the reason. */
  async stop(reason: string): Promise<void> {
    if (this.#phase !== "ended") this.#phase = "ending";
    this.#setFault(reason);
    await this.#end();
    await this.ended;
  }

  #end(): Promise<unknown> {
    return this.#options.isModule ? this.#child.close() : this.#child.kill();
  }

  /** To be given to the child as what reads its stderr. */
  readLogLine(text: string): void {
    if (this.#options.isModule && /^FATAL ERROR: .*heap out of memory/.test(text))
      this.#fatal = `${this.#options.name} was ended: JavaScript heap out of memory`; // as Node says, in the midst of much else
    const written = writtenLineFromText(text, Date.now());
    const line = { ...written, message: this.#options.redact(written.message) };
    line.fieldsJson &&= this.#options.redact(line.fieldsJson);
    this.#lastWords.add(line.message);
    const call = line.id === undefined ? undefined : this.#calls.get(line.id);
    if (!call || line.id === undefined) {
      this.#options.onLine(line);
      return;
    }
    call.tellLine(line);
    if (call.hasWholeAnswer) this.#settle(line.id, call);
  }

  async #run(): Promise<WorkerEnd> {
    try {
      for await (const line of this.#child.lines({ wholeOnly: true })) this.#readFrame(line);
    } catch (error) {
      this.#failProtocol(messageFromUnknown(error));
    }
    const exit = await this.#child.exited;
    const wasExpected = this.#phase === "ending";
    this.#phase = "ended";
    const told = (words: LastWords) =>
      this.#fault?.reason || this.#fatal || `${this.#options.name} ${words.textFromExit(exit)}`;
    const all = told(this.#lastWords);
    const detail = this.#fault ? `${all}${this.#fault.detail}\n${this.#lastWords.tail()}`.trimEnd() : all;
    this.#ready.reject(new Failure("failed_precondition", all, { reason: "WORKER_START_FAILED", cause: detail }));
    this.#failAll((call) => told(call.lastWords));
    const reason = this.#lastId === 0 ? all : told(createLastWords());
    return { reason, detail, wasExpected };
  }

  #readFrame(line: string): void {
    if (this.#brokeProtocol) return; // WORKER5
    this.#heardLines += 1;
    const frame = isLogLine(line) ? "log" : parseFrame(line);
    if (frame === "log") this.readLogLine(line);
    else if (frame === undefined) {
      const bytes = Buffer.byteLength(line);
      this.#failProtocol(`it wrote a line of ${bytes} bytes that is no frame`, `: ${line.slice(0, 200)}`);
    } else if (frame.kind === "ready" && frame.protocol !== PROTOCOL) {
      const words = `speaks version ${frame.protocol} of the protocol, and this pool version ${PROTOCOL}`;
      this.#fail(`${this.#options.name} ${words}: start it with the SDK of this release`);
    } else if (frame.kind === "ready") {
      if (frame.pid > 0 && !this.#options.hasOwnIds) this.pid = frame.pid;
      this.#ready.resolve(frame);
      this.#isReady = true;
    } else if (frame.kind === "fatal") {
      const { unloaded, name } = this.#options;
      if (!this.#isReady) this.#setFault(`${unloaded}${this.#options.redact(frame.reason)}`);
      else {
        this.#setFault(`${name} was ended by an error that nobody caught`, `: ${frame.reason}`); // WORKER6
        void this.#end(); // whatever it does
      }
    } else this.#readCallFrame(frame);
  }

  #readCallFrame(frame: Extract<Frame, { id: number }>): void {
    const { id } = frame;
    if (!Number.isInteger(id) || id < 1 || id > this.#lastId) {
      this.#failProtocol(`it answered call ${id}, which it was never given`);
      return;
    }
    const call = this.#calls.get(id);
    if (frame.kind === "ask") {
      void this.#answerAsk(frame, call);
      return;
    }
    if (frame.kind === "progress") {
      const { message } = frame.progress;
      call?.tellProgress({ ...frame.progress, message: shortened(this.#options.redact(message), PROGRESS_LENGTH) });
      return;
    }
    if (!call || call.isAnswered) {
      if (call) this.#settle(id, call);
      this.#failProtocol(`it answered call ${id} twice`);
      return;
    }
    call.hold(frame, () => this.#settle(id, call));
    if (call.hasWholeAnswer) this.#settle(id, call);
  }

  async #answerAsk({ askId, ask }: Extract<Frame, { kind: "ask" }>, call: CallInFlight | undefined): Promise<void> {
    const isOver = call === undefined || call.isGivenUp;
    const answering = isOver ? Promise.reject(new Error("the call is over")) : call.ask(ask);
    const answer = await answering.catch((error): Answer => ({ kind: "error", error: messageFromUnknown(error) }));
    this.#write(lineFromReply(askId, answer));
  }

  #settle(id: number, call: CallInFlight): void {
    call.settle(this.#options.redact);
    this.#remove(id, call);
  }

  /** WORKER2. */
  #giveUp(id: number, reason: unknown): void {
    const call = this.#calls.get(id);
    if (!call) return;
    call.giveUp(reason);
    this.#write(lineFromCancel(id));
    this.#endIfDrained();
    const heardBefore = this.#heardLines;
    const replaceAfterGrace = (isSecond = false) =>
      startTimer(this.#options.cancelGraceMs, () => replace(isSecond), { isBackground: true });
    const replace = (isSecond: boolean) => {
      if (this.#calls.get(id) !== call) return;
      const { name, isModule } = this.#options;
      if (isModule && this.#heardLines === heardBefore) {
        if (isSecond) this.#fail(`${name} was ended: ${call.function} did not return`);
        else replaceAfterGrace(true);
        return;
      }
      const message = `${call.function} goes on after its time: ${name} is started again`;
      this.#options.onLine({ timeMs: Date.now(), level: LogLevel.WARN, message, fieldsJson: "" });
      call.end(); // it stays in the list: while its thread is taken, the process does not end by itself
      void this.retire();
    };
    replaceAfterGrace();
  }

  #remove(id: number, call: CallInFlight): void {
    this.#calls.delete(id);
    this.lastUsedAtMs = Date.now();
    call.end();
    this.#endIfDrained();
    if (this.accepts && this.#calls.size === 0) this.#options.onIdle?.();
  }

  #endIfDrained(): void {
    if (this.#phase !== "retiring") return;
    const calls = [...this.#calls.values()];
    if (!calls.every(({ isGivenUp }) => isGivenUp)) return;
    this.#phase = "ending";
    void (calls.length === 0 ? this.#child.close() : this.#end());
  }

  #failAll(reasonOf: (call: CallInFlight) => string): void {
    for (const call of this.#calls.values()) {
      if (!this.#brokeProtocol) call.settle(this.#options.redact); // WORKER1: one that is held for its log lines
      call.fail(new Failure("unavailable", reasonOf(call), { reason: "WORKER_CRASHED" }));
    }
    this.#calls.clear();
  }

  #failProtocol(reason: string, detail = ""): void {
    this.#brokeProtocol = true;
    this.#fail(`${this.#options.name} broke the protocol: ${reason}`, detail);
  }

  #fail(reason: string, detail = ""): void {
    this.#setFault(reason, detail);
    void this.#child.kill();
  }

  #setFault(reason: string, detail = ""): void {
    this.#fault ??= { reason, detail: this.#options.redact(detail) };
  }

  #write(line: string): void {
    this.#child.write(line).catch(() => {}); // a process that takes no input is about to exit, which fails its calls
  }
}
