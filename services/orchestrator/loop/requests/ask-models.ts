/**
 * Asks an agent's models until one answers.
 *
 * retry-1  What passes (a limit, a stall, a reset) is tried again with the same model, as often as the limits say, after what the
 *     provider asked for or a growing pause. All else is not: an error in a provider's program comes again.
 * retry-2  A model that is given up is followed by the next one, which starts over: an answer is of one model from its first
 *     word to its last. One that asks for a long wait is not waited for while there is another.
 * retry-3  Between two attempts stands what the first one used: a run that may use no more asks no model.
 * retry-4  A provider that asks for more than the longest wait is not waited for at all: the run fails and says so.
 */

import { createBackoff } from "#runtime/time/retry/backoff.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { endReasonOfModelError, messageOfModelError } from "../../model/retry/provider-errors.ts";
import { decideRetry } from "../../model/retry/retry.ts";
import type { LoopContext } from "../context.ts";
import { RunFailed } from "../errors/run-failed.ts";
import type { AgentModel, ModelRow } from "./models.ts";

type Asking = Pick<LoopContext, "models" | "limits" | "clock" | "onRetry" | "onFailover">;

export interface Attempts<T> {
  /** Throws `RunFailed` for what no model mends. */
  readonly ask: (model: AgentModel) => Promise<T>;
  /** After each attempt that failed, aborted ones too: gives whether the run may go on (retry-3). */
  readonly settle: () => Promise<boolean>;
}

type Outcome<T> = { kind: "answered"; answer: T } | { kind: "given_up"; error: unknown } | { kind: "stopped" };

const longestWaitBeforeNextMs = 10_000;
const longestWaitMs = 600_000;

/** Undefined when the run may not go on. */
export async function askModels<T>(
  context: Asking,
  signal: AbortSignal,
  attempts: Attempts<T>,
): Promise<T | undefined> {
  const { models, onFailover } = context;
  for (;;) {
    const outcome = await askOne(context, signal, attempts);
    if (outcome.kind === "answered") return outcome.answer;
    if (outcome.kind === "stopped") return undefined;
    const { error } = outcome;
    if (!models.hasNext) throw failureOf(error, models.current);
    models.failOver(); // retry-2
    onFailover(error, models.current.language.modelId);
  }
}

async function askOne<T>(context: Asking, signal: AbortSignal, attempts: Attempts<T>): Promise<Outcome<T>> {
  const { models, limits, clock, onRetry } = context;
  const backoff = createBackoff({ initialMs: 250, maxMs: 10_000, jitter: 0.5 });
  for (let failures = 0; ; failures += 1) {
    let error: unknown;
    try {
      return { kind: "answered", answer: await attempts.ask(models.current) };
    } catch (thrown) {
      error = thrown;
    }
    const goesOn = await attempts.settle(); // retry-3
    signal.throwIfAborted();
    if (error instanceof RunFailed) throw error;
    if (!goesOn) return { kind: "stopped" };
    const retry = decideRetry(error, backoff, clock.now());
    if (retry.kind === "give_up" || failures >= limits.modelRetries) return { kind: "given_up", error }; // retry-1
    if (models.hasNext && retry.afterMs > longestWaitBeforeNextMs) return { kind: "given_up", error }; // retry-2
    if (retry.afterMs > longestWaitMs) refuseWait(error, models.current, retry.afterMs); // retry-4
    onRetry(error, retry.afterMs);
    await clock.delay(retry.afterMs, signal);
  }
}

function refuseWait(error: unknown, model: AgentModel, afterMs: number): never {
  const asked = `the provider asks to wait ${Math.ceil(afterMs / 1_000)} s`;
  throw failureOf(error, model, ` (${asked}, and ${longestWaitMs / 1_000} s are the most)`);
}

function failureOf(error: unknown, { language: { modelId } }: AgentModel, more = ""): RunFailed {
  return new RunFailed(endReasonOfModelError(error, modelId), messageOfModelError(error, modelId) + more, error);
}

/** turn-3. `what` is asked for, once more after each answer that was dropped in its turn. */
export function keyOfRequest({ runId, droppedInTurn }: FoldedRun, { failovers }: ModelRow, what: string): string {
  const place = failovers === 0 ? "" : `-${failovers + 1}`;
  return `${runId}-${what}-${droppedInTurn + 1}${place}`;
}
