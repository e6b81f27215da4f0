import { create } from "@bufbuild/protobuf";
import { type Member, type SpaceMessage, ToolMessageSchema, ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { resultFromOutcome, type Submission } from "#runtime/results/submission.ts";
import type { Membership } from "../space/membership.ts";
import { isFinal } from "../space/space-state.ts";
import type { Messages } from "./messages.ts";
import { toolOf, wordOf } from "./tool-message.ts";

export interface Answer extends Submission {
  callId: string;
}

/** An answer as the router has recorded it. */
interface RecordedAnswer {
  readonly result?: ToolResult | undefined;
  /** Whether who made the call had stopped waiting. */
  readonly resolvedLate: boolean;
}

/** Hands an answer to the router, which takes exactly one. */
export type SubmitAnswer = (answer: Answer) => Promise<RecordedAnswer | undefined>;

/** The space in which the router has a call wait; empty for none. */
export type FindSpace = (callId: string) => Promise<string>;

/** An answer as people see it. */
export interface Shown {
  readonly message: SpaceMessage;
  readonly resolvedLate: boolean;
}

export type Answers = ReturnType<typeof createAnswers>;

export interface AnswersParts {
  messages: Messages;
  membership: Pick<Membership, "join">;
  submit: SubmitAnswer;
  findSpace: FindSpace;
}

/**
 * Answers of people to tool calls that wait in a space. The router decides which answer wins and whether it fits the
 * schema; what is shown follows.
 */
export function createAnswers({ messages, membership, submit, findSpace }: AnswersParts) {
  return {
    /** The person takes part in the space from then on. */
    async answer(spaceId: string, { by, ...answer }: Answer & { by: Member }): Promise<Shown> {
      const shown = (await messages.findTool(spaceId, answer.callId)) ?? refuseUnknown(spaceId, answer.callId);
      const { state: status } = toolOf(shown);
      const isOver = isFinal(status);
      if (!isOver && status !== ToolMessageState.REQUIRES_ACTION) {
        refuse("failed_precondition", `call ${answer.callId} waits for nobody: it is ${wordOf(status)}`, {
          reason: "CALL_NOT_AWAITED",
          metadata: { call_id: answer.callId },
        });
      }
      // SEC-2: ids of calls are chosen by who calls, so a space may show a call under the id of one that waits in another
      if ((await findSpace(answer.callId)) !== spaceId) refuseUnknown(spaceId, answer.callId);
      // whether it ended by this very submission, the router knows, which refuses any other one
      if (isOver) return { message: shown, resolvedLate: (await submit(answer))?.resolvedLate ?? false };
      await membership.join(spaceId, by);
      const { result = resultFromOutcome(answer.outcome), resolvedLate = false } = (await submit(answer)) ?? {};
      const author = shown.author ?? refuse("internal", `message ${shown.id} has no author`, { reason: "RECORD_LOST" });
      const tool = create(ToolMessageSchema, {
        callId: answer.callId,
        state: result.isError ? ToolMessageState.ERROR : ToolMessageState.COMPLETE,
        result,
      });
      return { message: await messages.recordTool({ spaceId, author, tool }), resolvedLate };
    },
  };
}

function refuseUnknown(spaceId: string, callId: string): never {
  return refuse("not_found", `space "${spaceId}" shows no call ${callId}`, {
    reason: "CALL_NOT_FOUND",
    metadata: { call_id: callId },
  });
}
