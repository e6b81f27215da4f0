import type { Command } from "commander";
import { ExecutionType, ExecutionTypeSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ListToolsResponseSchema, type ModelTool, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { colors, nameOfValue, oneLine, printLine, printMessage, printTable } from "../../printing/print.ts";
import { addApproveCommand } from "./approve.ts";

interface Options {
  agent?: string;
  session?: string;
}

export function addToolsCommand(program: Command): void {
  const tools = program
    .command("tools")
    .description("List tools: of the catalogue, of an agent, or of a session; approve what changed")
    .option("-a, --agent <name>", "tools that this agent has")
    .option("-s, --session <id>", "tools of this session, its caller's among them")
    .action(listTools);
  addApproveCommand(tools);
}

function scopeFrom({ agent, session }: Options) {
  if (session) return { case: "session", value: { sessionId: session } } as const;
  return agent ? ({ case: "agent", value: agent } as const) : { case: undefined };
}

async function listTools(options: Options, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const router = openConnection(global).client(ToolService);
  const scope = scopeFrom(options);
  const pages = await allPages((pageToken) => router.listTools({ scope, pageToken }));
  const tools = pages.flatMap((page) => page.tools);
  const response = { ...pages[0], tools, nextPageToken: "" };
  if (global.json) return printMessage(ListToolsResponseSchema, response);
  printTable(["NAME", "REFERENCE", "KIND", "STATE", "DESCRIPTION"], response.tools.map(rowFromTool));
  for (const source of response.sources.filter((entry) => !entry.available)) {
    printLine(colors.yellow(`@${source.source} cannot be used: ${source.reason}`));
  }
}

function rowFromTool(entry: ModelTool): string[] {
  const { tool } = entry;
  const kind = nameOfValue(ExecutionTypeSchema, tool?.executionType ?? ExecutionType.UNSPECIFIED);
  const state = entry.callable && entry.available ? "callable" : entry.reason || "not callable";
  return [entry.modelName, entry.reference, kind, state, oneLine(tool?.description ?? "")];
}
