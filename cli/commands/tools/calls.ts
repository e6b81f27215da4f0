import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { ToolCallState, ToolCallStateSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import {
  CancelToolCallResponseSchema,
  ListToolCallsResponseSchema,
  SubmitToolResultResponseSchema,
  ToolCallService,
} from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { addSubmissionOption, submissionOf } from "../../answering/submission.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { UsageFault } from "../../faults/fault.ts";
import { invocation } from "../../faults/invocation.ts";
import { addResultCommand } from "../../printing/call-result.ts";
import { nameOfValue, oneLine, printLine, printMessage, printNote, printTable } from "../../printing/print.ts";

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
  const answer = calls
    .command("answer")
    .description("Answer what a tool asks while it is called: accept, or --decline or --cancel")
    .argument("<id>")
    .argument("[content]", "what the form asks for, as JSON; what has a default may be left out")
    .addOption(new Option("-d, --decline", "say no").conflicts("cancel"))
    .option("-c, --cancel", "do not answer");
  addSubmissionOption(answer).action(answerQuestion);
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
  if (response.nextPageToken !== "") printNote(`more: ${invocation} calls --after ${response.nextPageToken}`);
}

async function submitResult(
  callId: string,
  resultJson: string,
  { error, submission }: { error?: string | undefined; submission?: string | undefined },
  command: Command,
): Promise<void> {
  const global = globalOptionsOf(command);
  const service = openConnection(global).client(ToolCallService);
  const response = await service.submitToolResult({
    callId,
    ...submissionOf(resultJson, error, submission),
  });
  if (global.json) printMessage(SubmitToolResultResponseSchema, response);
  else
    printLine(
      `${callId} is answered${response.call?.resolvedLate ? "; nobody waited for it any more, so it is in the inbox of the agent" : ""}`,
    );
}

async function answerQuestion(
  callId: string,
  content: string | undefined,
  { decline, cancel, submission }: { decline?: boolean; cancel?: boolean; submission?: string },
  command: Command,
): Promise<void> {
  const isRefused = decline || cancel;
  if (isRefused && content !== undefined) throw new UsageFault("what is declined or canceled has no content");
  if (isRefused)
    return submitResult(callId, JSON.stringify({ action: decline ? "decline" : "cancel" }), { submission }, command);
  const accepted =
    content === undefined ? '{"action":"accept","content":{}}' : `{"action":"accept","content":${content}}`;
  return submitResult(callId, accepted, { submission }, command);
}

async function cancelCall(callId: string, { reason }: { reason: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const response = await openConnection(global).client(ToolCallService).cancelToolCall({ callId, reason });
  if (global.json) printMessage(CancelToolCallResponseSchema, response);
  else printLine(`${callId} ${response.started ? "had started; what still went on is stopped" : "will not start"}`);
}
