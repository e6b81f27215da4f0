import { type CallExecution, ExecutionType, ExecutionTypeSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { enumWord } from "../schema/enum-word.ts";

/** Who executed a call, in words; empty where that is not known. `attempts` is 0 where it is not. */
export interface Executed {
  readonly provider: string;
  readonly kind: string;
  readonly attempts: number;
}

/** Undefined for a call that nobody executed. */
export function executedFrom(execution: CallExecution | undefined): Executed | undefined {
  if (execution === undefined) return undefined;
  const { provider, executionType, attemptCount: attempts } = execution;
  const kind = executionType === ExecutionType.UNSPECIFIED ? "" : enumWord(ExecutionTypeSchema, executionType);
  return { provider, kind, attempts };
}
