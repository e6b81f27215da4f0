import { Code, ConnectError } from "@connectrpc/connect";
import { RunEndReason, RunState, type Run as StoredRun } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Connection } from "../connection.ts";
import { errorOf, isPassing, nameFrom, ToolbusError } from "../error.ts";
import type { Tool } from "../tool.ts";
import { type FunctionCalls, openFunctionCalls } from "./function-calls.ts";
import { createPlace, type RunUpdate } from "./place.ts";
import { createTextReader, type TextPiece } from "./text.ts";

export interface RunResult {
  readonly runId: string;
  readonly sessionId: string;
  /** `incomplete` ended by a limit, which `endReason` names. */
  readonly state: "completed" | "incomplete";
  /** As `FINAL_ANSWER` or `MAX_TURNS`. */
  readonly endReason: string;
  readonly text: string;
  /** The run as it is stored, with all its items and what it used. */
  readonly run: StoredRun;
}

/** A run that failed or was canceled. */
export class RunError extends ToolbusError {
  readonly runId: string;
  readonly state: "failed" | "canceled";
  readonly endReason: string;

  constructor(run: StoredRun) {
    const isCanceled = run.state === RunState.CANCELED;
    const endReason = nameFrom(RunEndReason, run.endReason);
    super(run.error || `the run ended: ${endReason}`, {
      code: isCanceled ? "canceled" : "aborted",
      reason: isCanceled ? "CANCELED" : "INTERNAL",
    });
    this.name = "RunError";
    this.runId = run.id;
    this.state = isCanceled ? "canceled" : "failed";
    this.endReason = endReason;
  }
}

export interface RunPlace {
  readonly runId: string;
  readonly sessionId: string;
}

/**
 * A run that goes on at the suite, whether or not anybody looks. `result()` waits for its end, `for await` gives its updates from the first
 * one on, `text()` what the model says. Each may be asked for, any number of times; a connection that breaks is opened again where it broke.
 * Its functions are called while one of them is.
 */
export class Run implements AsyncIterable<RunUpdate> {
  /** Where it is, once the suite has stored it. */
  readonly created: Promise<RunPlace>;
  readonly #connection: Connection;
  readonly #functions: readonly Tool[];
  readonly #over = new AbortController();
  #calls: Promise<FunctionCalls> | undefined;
  #result: Promise<RunResult> | undefined;

  /** Aborting the signal cancels the run; it is let go of once the run is seen to have ended. */
  constructor(
    connection: Connection,
    created: Promise<RunPlace>,
    { functions, signal }: { functions: readonly Tool[]; signal?: AbortSignal | undefined },
  ) {
    this.#connection = connection;
    this.created = created;
    this.#functions = functions;
    created.catch(() => this.#over.abort()); // whoever waits for the run is told
    const cancel = () => void this.cancel("the program aborted it").catch(() => {}); // it has ended, or nobody can be told
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true, signal: this.#over.signal });
  }

  /** Waits for its end. A run that failed or was canceled is a `RunError`. */
  result(): Promise<RunResult> {
    this.#result ??= this.#readResult();
    return this.#result;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RunUpdate> {
    yield* this.#updates(true);
  }

  /** What the model says, piece by piece. A piece that `replaces` stands for all that was told of its turn before. */
  async *text(): AsyncGenerator<TextPiece> {
    const reader = createTextReader();
    for await (const update of this.#updates(true)) yield* reader.piecesOf(update);
  }

  async cancel(reason = ""): Promise<void> {
    const { runId } = await this.created;
    const runs = this.#connection.client(RunService);
    await this.#connection.repeat(() => runs.cancelRun({ runId, reason }));
  }

  async #readResult(): Promise<RunResult> {
    for await (const _ of this.#updates(false)); // to its end, answering the calls of its functions
    const { runId } = await this.created;
    const runs = this.#connection.client(RunService);
    const { run } = await this.#connection.repeat(() => runs.getRun({ runId }));
    if (run?.state !== RunState.COMPLETED && run?.state !== RunState.INCOMPLETE) throw new RunError(run as StoredRun);
    const { sessionId, outputText: text } = run;
    const state = run.state === RunState.COMPLETED ? "completed" : "incomplete";
    return { runId, sessionId, state, endReason: nameFrom(RunEndReason, run.endReason), text, run };
  }

  async *#updates(includeDeltas: boolean): AsyncGenerator<RunUpdate> {
    const { runId } = await this.created;
    this.#calls ??= openFunctionCalls(this.#connection, runId, this.#functions);
    const calls = await this.#calls;
    const runs = this.#connection.client(RunService);
    const place = createPlace();
    using leaving = openEnding(calls.failed); // a stream that is left would go on
    const { signal } = leaving;
    const open = async function* () {
      yield* runs.watchRun({ runId, includeDeltas, ...place.next() }, { signal });
      if (!place.hasEnded) throw new ConnectError("the stream ended before the run", Code.Unavailable);
    };
    try {
      for await (const { update } of resumed({ open, isPassing, patienceMs: this.#connection.patienceMs, signal })) {
        place.pass(update);
        if (place.hasEnded) this.#over.abort();
        if (update.case === "event") calls.see(update.value);
        yield update;
      }
    } catch (error) {
      throw errorOf(calls.failed.aborted ? calls.failed.reason : error);
    } finally {
      leaving.end();
    }
  }
}
