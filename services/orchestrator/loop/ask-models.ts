/**
 * Asks an agent's models until one answers.
 *
 * R1  What passes (a limit, a stall, a reset) is tried again with the same model, as often as the limits say, after what the
 *     provider asked for or a growing pause. All else is not: an error in a provider's program comes again.
 * R2  A model that is given up is followed by the next one, which starts over: an answer is of one model from its first
 *     word to its last. One that asks for a long wait is not waited for while there is another.
 */

import { createBackoff } from "#runtime/time/backoff.ts";
import { messageOfModelError } from "../model/provider-errors.ts";
import { decideRetry } from "../model/retry.ts";
import type { LoopContext } from "./context.ts";
import type { AgentModel } from "./models.ts";
import { RunFailed } from "./run-failed.ts";

type Asking = Pick<LoopContext, "models" | "limits" | "clock" | "onRetry" | "onFailover">;

const longestWaitMs = 10_000;

/** `ask` throws `RunFailed` for what no model mends. */
export async function askModels<T>(
  context: Asking,
  signal: AbortSignal,
  ask: (model: AgentModel) => Promise<T>,
): Promise<T> {
  const { models, onFailover } = context;
  for (;;) {
    try {
      return await askOne(context, signal, () => ask(models.current));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RunFailed) throw error;
      if (!models.hasNext)
        throw new RunFailed("model_error", messageOfModelError(error, models.current.language.modelId), error);
      models.failOver(); // R2
      onFailover(error, models.current.language.modelId);
    }
  }
}

async function askOne<T>(
  { models, limits, clock, onRetry }: Asking,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  const backoff = createBackoff({ initialMs: 250, maxMs: 10_000, jitter: 0.5 });
  for (let failures = 0; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RunFailed) throw error;
      const retry = decideRetry(error, backoff, clock.now());
      if (retry.kind === "give_up" || failures >= limits.modelRetries) throw error; // R1
      if (models.hasNext && retry.afterMs > longestWaitMs) throw error; // R2
      onRetry(error, retry.afterMs);
      await clock.delay(retry.afterMs, signal);
    }
  }
}
