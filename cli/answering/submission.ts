import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import type { Submission } from "#runtime/results/submission.ts";

/** For commands that answer a call. */
export function addSubmissionOption(command: Command): Command {
  return command.option(
    "--submission <id>",
    "the id of the answer: repeat it with the same one if you miss its outcome",
  );
}

/** A result as JSON, or why there is none. */
export function submissionOf(
  result: string,
  error: string | undefined,
  submissionId: string = randomUUID(),
): Submission {
  const outcome =
    error === undefined ? ({ case: "resultJson", value: result } as const) : ({ case: "error", value: error } as const);
  return { submissionId, outcome };
}
