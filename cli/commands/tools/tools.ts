import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { ExecutionType, ExecutionTypeSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import {
  type ListToolsResponse,
  ListToolsResponseSchema,
  type ModelTool,
  ToolService,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { colors, nameOfValue, oneLine, printLine, printMessage, printNote, printTable } from "../../printing/print.ts";
import { addApproveCommand } from "./approve.ts";

/** How long one list waits for sources that are starting, before it is said what they do. */
const WAIT = durationFromMs(1_000);

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
  const pages = await listPatiently((pageToken) => router.listTools({ scope, pageToken, sourceWait: WAIT }));
  const tools = pages.flatMap((page) => page.tools);
  const response = { ...pages[0], tools, nextPageToken: "" };
  if (global.json) return printMessage(ListToolsResponseSchema, response);
  printTable(["NAME", "REFERENCE", "KIND", "STATE", "DESCRIPTION"], response.tools.map(rowFromTool));
  for (const source of response.sources.filter((entry) => !entry.available)) {
    const isFile = source.source.includes("/"); // of a tool, which is refused
    printLine(colors.yellow(`${isFile ? "" : "@"}${source.source} cannot be used: ${source.reason}`));
  }
}

/** Lists again and again while sources are starting, and says what they do. Each has its own time to start. */
async function listPatiently(page: (pageToken: string) => Promise<ListToolsResponse>) {
  const told = new Map<string, string>();
  for (;;) {
    const pages = await allPages(page);
    const starting = pages[0].sources.filter((source) => source.starting);
    if (starting.length === 0) return pages;
    for (const { source, reason } of starting) {
      if (told.get(source) !== reason) printNote(`@${source}: ${reason}`);
      told.set(source, reason);
    }
  }
}

function rowFromTool(entry: ModelTool): string[] {
  const { tool } = entry;
  const kind = nameOfValue(ExecutionTypeSchema, tool?.executionType ?? ExecutionType.UNSPECIFIED);
  const isCallable = entry.callable && entry.available;
  const text = (!isCallable && entry.reason) || (tool?.description ?? "");
  return [entry.modelName, entry.reference, kind, isCallable ? "callable" : "not callable", oneLine(text)];
}
