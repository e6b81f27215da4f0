import { toJson } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { type FunctionCall, type Run, RunSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { type ToolCall, ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { questionOf } from "#runtime/content/questions.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { callsForPeople } from "../../answering/calls-for-people.ts";
import { sampleJson } from "../../answering/sample-answer.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { invocation } from "../../faults/invocation.ts";
import { colors, oneLine, printJson, printLine, printLines, printNote } from "../../printing/print.ts";
import { quoted } from "../../printing/quoted.ts";
import { addAnswerLinkCommand } from "./answer-link.ts";

export function addAnswersCommand(program: Command): void {
  const answers = program
    .command("answers")
    .description("List what waits for an answer of yours, and how to give it")
    .option("-s, --session <id>", "only of this session")
    .action(listAnswers);
  addAnswerLinkCommand(answers);
}

async function listAnswers({ session = "" }: { session?: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  const [calls, runs] = await Promise.all([callsForPeople(connection, session), parkedRuns(connection, session)]);
  if (global.json) {
    return printJson({
      calls: calls.map((call) => toJson(ToolCallSchema, call)),
      runs: runs.map((run) => toJson(RunSchema, run)),
    });
  }
  const all = [
    ...calls.map(textOfCall),
    ...runs.flatMap((run) => run.requiredCalls.map((call) => textOfRequired(run, call))),
  ];
  if (all.length === 0) printNote("nothing waits for an answer");
  for (const [index, lines] of all.entries()) {
    if (index > 0) printLine();
    printLines(lines);
  }
}

async function parkedRuns(connection: Connection, sessionId: string): Promise<Run[]> {
  const request = { sessionId, states: [RunState.REQUIRES_ACTION], pageSize: 1_000 };
  const runs = connection.client(RunService);
  return (await allPages((pageToken) => runs.listRuns({ ...request, pageToken }))).flatMap((page) => page.runs);
}

function textOfCall(call: ToolCall): string[] {
  const { callId, tool, agent, createTime, expireTime, spaceId, argumentsJson } = call;
  const { message, url, schemaJson } = questionOf(call);
  const sample = quoted(sampleJson(schemaJson));
  const how =
    call.question === undefined
      ? `${invocation} answer ${spaceId} ${callId} ${sample}`
      : `${invocation} calls answer ${callId}${url === "" ? ` ${sample}` : ""}`;
  return [
    headOf(tool, agent, { since: createTime, until: expireTime }),
    `  ${oneLine(message || argumentsJson)}`,
    ...(url === "" ? [] : [`  open ${url}, then`]),
    `  ${colors.bold(how)}`,
  ];
}

function textOfRequired(run: Run, { name, callId, argumentsJson }: FunctionCall): string[] {
  const how = `${invocation} runs answer ${run.id} ${callId} 'JSON'`;
  return [headOf(name, run.agent, { since: run.createTime }), `  ${oneLine(argumentsJson)}`, `  ${colors.bold(how)}`];
}

interface Times {
  readonly since: Timestamp | undefined;
  /** When an answer comes too late; undefined means never. */
  readonly until?: Timestamp | undefined;
}

function headOf(name: string, agent: string, { since, until }: Times): string {
  const times = [since && `since ${textOfTime(since)}`, until && `until ${textOfTime(until)}`].filter(Boolean);
  return `${colors.yellow(name)} of ${agent}, ${times.join(", ")}`;
}

function textOfTime(time: Timestamp): string {
  return timestampDate(time).toISOString();
}
