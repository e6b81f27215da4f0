import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type CallToolResponse, type CallToolResult, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { connectError, failureFromConnectError, isUnavailable } from "#runtime/failure/connect.ts";
import { startedNothing } from "#runtime/failure/not-started.ts";
import { type RetryOptions, retryWhile } from "#runtime/time/retry/retry.ts";
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
 * not happen twice does not, and then answers `outcome_unknown`. Throws if that is told by nobody. When `signal` aborts, the call
 * is canceled, whoever has it, and not made again; its result then says so.
 */
export async function resultOfToolCall(
  connection: Connection,
  call: ToolCall,
  signal: AbortSignal,
  repetitions = REPETITIONS,
): Promise<CallToolResult> {
  signal.throwIfAborted();
  const callId = randomUUID();
  const tries = { initialMs: 100, maxMs: 4_000, attempts: repetitions + 1 };
  let canceled: Promise<void> | undefined;
  const ended = new AbortController();
  const cancel = () => {
    canceled = cancelToolCall(connection, callId, { ...tries, signal: ended.signal });
  };
  signal.addEventListener("abort", cancel);
  using stack = new DisposableStack();
  stack.defer(() => ended.abort());
  stack.defer(() => signal.removeEventListener("abort", cancel));
  let last: unknown;
  let mayHaveStarted = false;
  const send = async () => {
    if (signal.aborted) throw last; // only the cancellation is repeated
    try {
      return await resultOf(connection.client(ToolService).callTool({ ...call, callId }));
    } catch (error) {
      last = error;
      mayHaveStarted ||= isLost(error);
      throw error;
    }
  };
  const isRepeated = (error: unknown) => isUnavailable(error) && (mayHaveStarted || !isUnreachable(error));
  const onRetry = (error: unknown, repetition: number) => {
    const { rawMessage } = ConnectError.from(error);
    printNote(`${rawMessage}: the call ${callId} is repeated (${repetition} of ${repetitions})`);
  };
  return await retryWhile(isRepeated, send, { ...tries, onRetry, closing: signal }).catch(async (error: unknown) => {
    if (!mayHaveStarted || !isUnavailable(error)) throw error;
    await canceled;
    const text = `the outcome of the call ${callId} is unknown: ${error.rawMessage}`;
    const advice = `"${invocation} calls result ${callId}" tells it once the suite is up.`;
    throw connectError("unavailable", `${text}\n${advice}`, { reason: "OUTCOME_UNKNOWN" });
  });
}

/** Lost with who may have started it. */
function isLost(error: unknown): boolean {
  return isUnavailable(error) && !isUnreachable(error) && !startedNothing(failureFromConnectError(error));
}

/** Repeated as long as nobody can take it, unless the call ends before. */
async function cancelToolCall(connection: Connection, callId: string, options: RetryOptions): Promise<void> {
  printNote(`the call ${callId} is canceled`);
  const request = { callId, reason: "interrupted by its caller" };
  try {
    await retryWhile(isUnavailable, () => connection.client(ToolCallService).cancelToolCall(request), options);
  } catch (error) {
    if (options.signal?.aborted) return;
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
