import type { Command } from "commander";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { CallToolResultSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { exitCodes, UsageFault } from "../../faults/fault.ts";
import { printLine, printMessage } from "../../printing/print.ts";
import { openInterruption } from "../../requests/interruption.ts";
import { resultOfToolCall } from "../../requests/tool-call.ts";

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
  using interruption = openInterruption();
  const { signal } = interruption;
  const session = await openSession(connection, options);
  try {
    const result = await resultOfToolCall(connection, { sessionId: session.id, name: tool, argumentsJson }, signal);
    if (global.json) printMessage(CallToolResultSchema, result);
    else printLine(result.outputJson);
    if (result.isError) process.exitCode = exitCodes.failure;
  } finally {
    if (signal.aborted) process.exitCode = exitCodes.interrupted;
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
