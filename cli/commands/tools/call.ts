import { text as readText } from "node:stream/consumers";
import type { Command } from "commander";
import { CallToolResultSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { exitCodes, UsageFault } from "../../faults/fault.ts";
import { printLine, printMessage } from "../../printing/print.ts";
import { type InSession, withSession, withSessionOptions } from "../../requests/session/in-session.ts";
import { resultOfToolCall } from "../../requests/tool-call.ts";

export function addCallCommand(program: Command): void {
  const call = program
    .command("call")
    .description("Call a tool as an agent would, under the same policy")
    .argument("<tool>", "name, alias or reference, for example @files/read_file")
    .argument("[arguments]", "arguments as JSON, or - to read them from standard input", "{}");
  withSessionOptions(call).action(callTool);
}

async function callTool(tool: string, text: string, options: InSession, command: Command): Promise<void> {
  const argumentsJson = await readArguments(text);
  await withSession(options, command, async ({ connection, sessionId, signal, json }) => {
    const result = await resultOfToolCall(connection, { sessionId, name: tool, argumentsJson }, signal);
    if (json) printMessage(CallToolResultSchema, result);
    else printLine(result.outputJson);
    if (result.isError) process.exitCode = exitCodes.failure;
  });
}

async function readArguments(text: string): Promise<string> {
  const json = text === "-" ? await readText(process.stdin) : text;
  try {
    JSON.parse(json);
  } catch (cause) {
    throw new UsageFault(`the arguments are not JSON: ${(cause as Error).message}`, { cause });
  }
  return json;
}
