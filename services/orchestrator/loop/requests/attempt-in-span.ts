import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { attributesOfAnswer, attributesOfFirstChunk, modelSpan } from "#runtime/telemetry/conventions.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { type Answer, AnswerTooLarge } from "../../model/attempt/answer.ts";
import { type AttemptOptions, takeAttempt } from "../../model/attempt/attempt.ts";
import type { LoopContext } from "../context.ts";
import { RunFailed } from "../errors/run-failed.ts";
import type { AgentModel } from "./models.ts";

interface Asked {
  readonly model: AgentModel;
  readonly state: FoldedRun;
  /** What is asked for. */
  readonly what: "turn" | "summary";
}

/** One request to a model, as a span of its run. */
export function attemptInSpan(
  { inSpan, limits, maxTurnBytes: maxBytes }: Pick<LoopContext, "inSpan" | "limits" | "maxTurnBytes">,
  { model: { language, config }, state, what }: Asked,
  call: LanguageModelV4CallOptions,
  options: Omit<AttemptOptions, "stallMs" | "maxBytes">,
): Promise<Answer> {
  const { agent, sessionId } = state.accepted;
  const describe = () => modelSpan({ agent, sessionId, runId: state.runId }, config);
  return inSpan(describe, async (span) => {
    const askedAt = performance.now();
    let hasBegun = false;
    const onPiece: AttemptOptions["onPiece"] = (piece) => {
      if (!hasBegun) span.set(attributesOfFirstChunk(performance.now() - askedAt));
      hasBegun = true;
      options.onPiece(piece);
    };
    const answer = await takeAttempt(language, call, { ...options, onPiece, maxBytes, stallMs: limits.modelStallMs });
    span.set(attributesOfAnswer(answer));
    return answer;
  }).catch((error: unknown) => {
    if (!(error instanceof AnswerTooLarge)) throw error;
    throw new RunFailed(RunEndReason.TURN_TOO_LARGE, `the model's ${what} takes ${error.message}`, error);
  });
}
