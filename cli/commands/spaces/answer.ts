import type { Command } from "commander";
import { AnswerToolCallResponseSchema, SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { addSubmissionOption, submissionOf } from "../../answering/submission.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { UsageFault } from "../../faults/fault.ts";
import { printLine, printMessage, printNote } from "../../printing/print.ts";

export function addAnswerCommand(program: Command): void {
  const command = program
    .command("answer")
    .description("Answer a tool call that waits for a person in a space")
    .argument("<space>", "the space")
    .argument("<call>", "the call's id, as `toolbus watch space` shows it")
    .argument("[result]", "the answer as JSON")
    .option("--refuse <why>", "refuse instead of answering");
  addSubmissionOption(command).action(answer);
}

async function answer(
  spaceId: string,
  callId: string,
  result: string | undefined,
  options: { refuse?: string; submission?: string },
  command: Command,
): Promise<void> {
  if ((result === undefined) === (options.refuse === undefined)) {
    throw new UsageFault("give either an answer as JSON or --refuse WHY");
  }
  const global = globalOptionsOf(command);
  const spaces = openConnection(global).client(SpaceService);
  const submission = submissionOf(result ?? "", options.refuse, options.submission);
  const response = await spaces.answerToolCall({ spaceId, callId, ...submission });
  if (global.json) return printMessage(AnswerToolCallResponseSchema, response);
  printLine(`answered ${callId}`);
  if (response.resolvedLate)
    printNote("nobody waited for it any more: it is in the inbox of the agent, for its next run");
}
