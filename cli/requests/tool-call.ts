import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type CallToolResponse, type CallToolResult, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { connectError, isUnavailable } from "#runtime/failure/connect.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import type { Connection } from "../connection.ts";
import { isUnreachable } from "../faults/fault.ts";
import { invocation } from "../faults/invocation.ts";
import { printNote, progressText } from "../printing/print.ts";

export interface ToolCall {
  sessionId: string;
  name: string;
  argumentsJson: string;
}

/** Long enough for a gateway that ended to be there again. */
const REPETITIONS = 8;

/**
 * The result of a call. One that is lost with the service that had it in its hands is made again under the same id: what must
 * not happen twice does not, and then answers `outcome_unknown`. Throws if that is told by nobody. When `signal` aborts, the call is canceled, whoever has it; its
 * result then says so.
 */
export async function resultOfToolCall(
  connection: Connection,
  call: ToolCall,
  signal: AbortSignal,
  repetitions = REPETITIONS,
): Promise<CallToolResult> {
  signal.throwIfAborted();
  const callId = randomUUID();
  const cancel = () => void cancelToolCall(connection, callId);
  signal.addEventListener("abort", cancel);
  using stack = new DisposableStack();
  stack.defer(() => signal.removeEventListener("abort", cancel));
  let wasSent = false;
  const isRepeated = (error: unknown) => {
    wasSent ||= isUnavailable(error) && !isUnreachable(error); // a gateway that was never reached is another matter
    return wasSent && isUnavailable(error) && !signal.aborted;
  };
  const send = () => resultOf(connection.client(ToolService).callTool({ ...call, callId }));
  const onRetry = (error: unknown, repetition: number) => {
    const { rawMessage } = ConnectError.from(error);
    printNote(`${rawMessage}: the call ${callId} is repeated (${repetition} of ${repetitions})`);
  };
  const waits = { initialMs: 100, maxMs: 4_000, attempts: repetitions + 1, onRetry };
  return await retryWhile(isRepeated, send, waits).catch((error: unknown) => {
    if (!wasSent || !isUnavailable(error)) throw error;
    const text = `the outcome of the call ${callId} is unknown: ${error.rawMessage}`;
    const advice = `"${invocation} calls result ${callId}" tells it once the suite is up.`;
    throw connectError("unavailable", `${text}\n${advice}`, { reason: "OUTCOME_UNKNOWN" });
  });
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
