import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type CallToolResponse, type CallToolResult, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import type { Connection } from "../connection.ts";
import { isUnreachable } from "../faults/fault.ts";
import { printNote, progressText } from "../printing/print.ts";

export interface ToolCall {
  sessionId: string;
  name: string;
  argumentsJson: string;
}

const repetitions = 4;

/**
 * The result of a call. One that is lost with the service that had it in its hands is made again under the same id: what must
 * not happen twice does not, and then answers `outcome_unknown`. When `signal` aborts, the call is canceled, whoever has it; its
 * result then says so.
 */
export async function resultOfToolCall(
  connection: Connection,
  call: ToolCall,
  signal: AbortSignal,
): Promise<CallToolResult> {
  signal.throwIfAborted();
  const callId = randomUUID();
  const cancel = () => void cancelToolCall(connection, callId);
  signal.addEventListener("abort", cancel);
  using stack = new DisposableStack();
  stack.defer(() => signal.removeEventListener("abort", cancel));
  const isRepeated = (error: unknown) => isLost(error) && !signal.aborted;
  const send = () => resultOf(connection.client(ToolService).callTool({ ...call, callId }));
  const onRetry = (error: unknown, repetition: number) => {
    const { rawMessage } = ConnectError.from(error);
    printNote(`${rawMessage}: the call ${callId} is repeated (${repetition} of ${repetitions})`);
  };
  return await retryWhile(isRepeated, send, { initialMs: 100, maxMs: 1_000, attempts: repetitions + 1, onRetry });
}

async function cancelToolCall(connection: Connection, callId: string): Promise<void> {
  printNote(`the call ${callId} is canceled`);
  try {
    await connection.client(ToolCallService).cancelToolCall({ callId, reason: "interrupted by its caller" });
  } catch (error) {
    printNote(`it could not be canceled: ${ConnectError.from(error).rawMessage}`);
  }
}

async function resultOf(answers: AsyncIterable<CallToolResponse>): Promise<CallToolResult> {
  let result: CallToolResult | undefined;
  for await (const { event } of answers) {
    if (event.case === "progress") printNote(progressText(event.value));
    if (event.case === "log") printNote(event.value.message);
    if (event.case === "result") result = event.value;
  }
  if (result === undefined) throw new Error("the call ended without a result");
  return result;
}

/** A gateway that cannot be reached at all is another matter. */
function isLost(error: unknown): boolean {
  return isUnavailable(error) && !isUnreachable(error);
}
