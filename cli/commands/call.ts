import type { Command } from "commander";
import { SessionService } from "#gen/toolbus/router/v1/sessions_pb.ts";
import { ToolRouterService } from "#gen/toolbus/router/v1/tool_router_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type Connection, globalOptionsOf, openConnection } from "../connection.ts";
import { exitCodes, UsageFault } from "../fault.ts";
import { printLine, printMessage, printNote } from "../print.ts";

interface Options {
  agent?: string;
  session?: string;
}

export function addCallCommand(program: Command): void {
  program
    .command("call")
    .description("Call a tool as an agent would, under the same policy")
    .argument("<tool>", "name, alias or reference, for example @files/read_file")
    .argument("[arguments]", "arguments as JSON, or - to read them from standard input", "{}")
    .option("-a, --agent <name>", "open a session with this agent for the call")
    .option("-s, --session <id>", "call in this session")
    .action(callTool);
}

async function callTool(tool: string, text: string, options: Options, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  const argumentsJson = await readArguments(text);
  const session = await openSession(connection, options);
  try {
    const result = await resultOfCall(connection, { sessionId: session.id, name: tool, argumentsJson });
    if (global.json) printMessage(ToolResultSchema, result);
    else printLine(result.outputJson);
    if (result.isError) process.exitCode = exitCodes.failure;
  } finally {
    if (session.isOwn) await connection.client(SessionService).closeSession({ sessionId: session.id });
  }
}

async function readArguments(text: string): Promise<string> {
  const json = text === "-" ? await textOfStandardInput() : text;
  try {
    JSON.parse(json);
  } catch (cause) {
    throw new UsageFault(`the arguments are not JSON: ${(cause as Error).message}`, { cause });
  }
  return json;
}

async function textOfStandardInput(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
  return text;
}

async function openSession(connection: Connection, options: Options): Promise<{ id: string; isOwn: boolean }> {
  if (options.session !== undefined) return { id: options.session, isOwn: false };
  if (options.agent === undefined) throw new UsageFault("say on whose behalf: --agent NAME or --session ID");
  const { session } = await connection.client(SessionService).createSession({ agent: options.agent });
  return { id: session?.id ?? "", isOwn: true };
}

interface Call {
  sessionId: string;
  name: string;
  argumentsJson: string;
}

async function resultOfCall(connection: Connection, call: Call): Promise<ToolResult> {
  let result: ToolResult | undefined;
  for await (const response of connection.client(ToolRouterService).callTool(call)) {
    if (response.event.case === "progress") printNote(progressLine(response.event.value));
    if (response.event.case === "log") printNote(response.event.value.message);
    if (response.event.case === "result") result = response.event.value;
  }
  if (result === undefined) throw new Error("the call ended without a result");
  return result;
}

function progressLine({ progress, total, message }: { progress: number; total: number; message: string }): string {
  return `${total > 0 ? `${progress}/${total}` : progress} ${message}`.trim();
}
