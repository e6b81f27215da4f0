import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { attributesOfAnswer, attributesOfFirstChunk, modelSpan } from "#runtime/telemetry/conventions.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { Answer } from "../../model/attempt/answer.ts";
import { type AttemptOptions, takeAttempt } from "../../model/attempt/attempt.ts";
import type { LoopContext } from "../context.ts";
import type { AgentModel } from "./models.ts";

/** One request to a model, as a span of its run. */
export function attemptInSpan(
  { inSpan }: Pick<LoopContext, "inSpan">,
  { model: { language, config }, state }: { model: AgentModel; state: FoldedRun },
  call: LanguageModelV4CallOptions,
  options: AttemptOptions,
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
    const answer = await takeAttempt(language, call, { ...options, onPiece });
    span.set(attributesOfAnswer(answer));
    return answer;
  });
}
