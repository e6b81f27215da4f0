/** What the model said, and the errors of a stream from which no answer comes. */

import type { LanguageModelV4FinishReason } from "@ai-sdk/provider";
import type { Tokens } from "#runtime/money/tokens.ts";

/** What the model said, in order; nothing of it is judged yet. */
export type AnswerPart =
  | { kind: "text" | "reasoning"; text: string; metadataJson: string }
  | { kind: "call"; id: string; name: string; argumentsJson: string; metadataJson: string };

export interface Answer {
  readonly parts: readonly AnswerPart[];
  readonly finishReason: LanguageModelV4FinishReason["unified"];
  /** As the provider counted; an estimate where it did not. */
  readonly usage: Tokens;
  readonly modelId: string;
}

/** What an attempt used that came to nothing. */
export type Used = Pick<Answer, "usage" | "modelId">;

/** What streams while the model speaks. */
export type Piece =
  | { kind: "text" | "reasoning"; text: string }
  | { kind: "arguments"; callId: string; name: string; text: string };

/** The model said more than may be kept. */
export class AnswerTooLarge extends Error {
  constructor(bytes: number, limit: number) {
    super(`at least ${bytes} bytes, over the limit of ${limit}`);
    this.name = "AnswerTooLarge";
  }
}

/** The stream ended in the middle. */
export class ModelInterrupted extends Error {
  override readonly name = "ModelInterrupted";
}
