/**
 * What attempts used that came to nothing: the log has it before anything else is asked (fold-5), and the run ends there when
 * it has used up what it may.
 */

import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ClaimedRun } from "../../log/claim.ts";
import type { EventBody } from "../../log/journal.ts";
import type { Draft, Place } from "../../log/state/draft/draft.ts";
import type { Used } from "../../model/attempt/answer.ts";
import { usageFrom } from "../../model/attempt/usage.ts";
import type { LoopContext } from "../context.ts";
import { decideStop } from "../limits/stop-condition.ts";
import { type AgentModel, pricedUsage } from "./models.ts";

export type BrokenAttempts = ReturnType<typeof createBrokenAttempts>;

export function createBrokenAttempts(run: ClaimedRun, { limits, clock }: LoopContext) {
  let noted: Extract<EventBody, { case: "answerDropped" }> | undefined;

  function keep(place: Place, { config }: AgentModel, { usage, modelId }: Used, brokeOff: boolean): void {
    noted = { case: "answerDropped", value: { ...place, usage: pricedUsage(config, usage), model: modelId, brokeOff } };
  }

  return {
    /** An attempt broke off that had used something. */
    note: (place: Place, model: AgentModel, used: Used) => keep(place, model, used, true),
    /** One of a process that was killed had said this: what it was asked with is what is asked again (draft-5). */
    noteLost({ turn, attempt, text }: Draft, model: AgentModel, prompt: LanguageModelV4Prompt): void {
      const usage = usageFrom(undefined, { prompt, saidBytes: Buffer.byteLength(text) });
      keep({ turn, attempt }, model, { usage, modelId: model.language.modelId }, true);
    },
    /** It was answered, with nothing that is of use. */
    drop: (place: Place, model: AgentModel, used: Used) => keep(place, model, used, false),
    /** Stores what was noted; gives whether the run may go on. Throws what the log says. */
    async settle(): Promise<boolean> {
      const body = noted;
      noted = undefined;
      if (body !== undefined) await run.spend(body);
      return decideStop(run.state, limits, clock.now()) === undefined;
    },
  };
}
