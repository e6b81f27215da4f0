import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { ToolCallState, ToolCallStateSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import {
  CancelToolCallResponseSchema,
  ListToolCallsResponseSchema,
  SubmitToolResultResponseSchema,
  ToolCallService,
} from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { addResultCommand } from "../../printing/call-result.ts";
import { nameOfValue, oneLine, printLine, printMessage, printNote, printTable } from "../../printing/print.ts";
import { addSubmissionOption, submissionOf } from "../../requests/submission.ts";

export function addCallsCommand(program: Command): void {
  const calls = program.command("calls").description("List, answer, read or cancel recorded tool calls");
  calls
    .command("list", { isDefault: true })
    .description("List the calls that somebody outside is to answer")
    .option("-s, --session <id>", "only those of this session")
    .option("-a, --all", "those that have ended, too")
    .option("--after <token>", "go on where the last list ended")
    .action(listCalls);
  const submit = calls
    .command("submit")
    .description("Answer a call with a result, or with --error")
    .argument("<id>")
    .argument("[result]", "the result as JSON", "null")
    .option("-e, --error <text>", "say that the call failed");
  addSubmissionOption(submit).action(submitResult);
  addResultCommand(calls);
  calls
    .command("cancel")
    .description("Keep a call from starting, or stop it")
    .argument("<id>")
    .option("-r, --reason <text>", "why", "")
    .action(cancelCall);
}

const OPEN = [ToolCallState.WAITING, ToolCallState.PENDING];

async function listCalls(
  options: { session?: string; all?: boolean; after?: string },
  command: Command,
): Promise<void> {
  const global = globalOptionsOf(command);
  const { session: sessionId = "", all = false, after: pageToken = "" } = options;
  const request = { sessionId, pageToken, states: all ? [] : OPEN };
  const response = await openConnection(global).client(ToolCallService).listToolCalls(request);
  if (global.json) return printMessage(ListToolCallsResponseSchema, response);
  const rows = response.calls.map((call) => [
    call.callId,
    call.tool,
    nameOfValue(ToolCallStateSchema, call.state),
    call.taken ? "taken" : "",
    call.sessionId,
    call.createTime === undefined ? "" : timestampDate(call.createTime).toISOString(),
    oneLine(call.argumentsJson),
  ]);
  printTable(["ID", "TOOL", "STATE", "BY A WATCHER", "SESSION", "SINCE", "ARGUMENTS"], rows);
  if (response.nextPageToken !== "") printNote(`more: toolbus calls --after ${response.nextPageToken}`);
}

async function submitResult(
  callId: string,
  resultJson: string,
  { error, submission }: { error?: string; submission?: string },
  command: Command,
): Promise<void> {
  const global = globalOptionsOf(command);
  const service = openConnection(global).client(ToolCallService);
  const response = await service.submitToolResult({
    callId,
    ...submissionOf(resultJson, error, submission),
  });
  if (global.json) printMessage(SubmitToolResultResponseSchema, response);
  else printLine(`${callId} is answered${response.call?.resolvedLate ? "; the inbox is told" : ""}`);
}

async function cancelCall(callId: string, { reason }: { reason: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const response = await openConnection(global).client(ToolCallService).cancelToolCall({ callId, reason });
  if (global.json) printMessage(CancelToolCallResponseSchema, response);
  else printLine(`${callId} ${response.started ? "had started; what still went on is stopped" : "will not start"}`);
}
