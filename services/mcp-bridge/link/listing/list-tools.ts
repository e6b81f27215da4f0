import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { pagesOf, ttlMsIn } from "../../tools/content.ts";
import { isOffered } from "../../tools/is-offered.ts";
import { parseTool } from "../../tools/listed/parse-tool.ts";
import { READ_RESOURCE } from "../../tools/read-resource.ts";
import { wantsTask } from "../tasks/tasks.ts";

/** The SDK's own schema refuses the whole list for one bad tool. */
const pageSchema = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().nullish() });

const MAX_PAGES = 500;
const MOST_TOOLS = 10_000;
const MOST_WARNINGS = 100;
/** Characters of all tools together. */
const MAX_LENGTH = 64 * 2 ** 20;

export interface ListedTools {
  tools: Tool[];
  /** Names of those that are called as tasks. */
  taskTools: ReadonlySet<string>;
  /** What was left out, in words for an operator. */
  warnings: string[];
  /** How long the server says that it may be kept. */
  ttlMs?: number | undefined;
}

/** Reads all pages. A cursor that comes again ends the list. */
export async function listTools(
  client: Client,
  options: { signal: AbortSignal; server: Pick<McpServer, "allowedTools" | "omitResources" | "transport"> },
): Promise<ListedTools> {
  const { allowedTools, omitResources } = options.server;
  const capabilities = client.getServerCapabilities();
  const tools = new Map<string, Tool>();
  const taskTools = new Set<string>();
  const warnings: string[] = [];
  const hasHeaders = options.server.transport.case === "http" && client.getProtocolEra() === "modern";
  const warn = (text: string) => warnings.length < MOST_WARNINGS && warnings.push(text);
  let [count, length] = [0, 0];
  let ttlMs: number | undefined;
  const onPage = (page: Record<string, unknown>) => {
    const kept = ttlMsIn(page);
    if (kept !== undefined) ttlMs = Math.min(kept, ttlMs ?? kept);
  };
  for await (const listed of listedTools(client, { signal: options.signal, warnings, onPage })) {
    if (count === MOST_TOOLS || length > MAX_LENGTH) {
      warnings.push(`the list is too long: ${MOST_TOOLS} tools or ${MAX_LENGTH / 2 ** 20} MiB are read`);
      break;
    }
    const parsed = parseTool(listed, { hasHeaders });
    count += 1;
    if (parsed.kind === "refused") warn(`the tool "${parsed.name}" is not offered: ${parsed.reason}`);
    else if (tools.has(parsed.tool.name)) warn(`the tool "${parsed.tool.name}" is listed twice: the first counts`);
    else if (isOffered(parsed.tool.name, allowedTools)) {
      tools.set(parsed.tool.name, parsed.tool);
      length += lengthOf(parsed.tool);
      if (wantsTask(client, listed)) taskTools.add(parsed.tool.name);
    }
  }
  const { name } = READ_RESOURCE;
  const hasResources = capabilities?.resources !== undefined && !omitResources;
  if (hasResources && !tools.has(name) && isOffered(name, allowedTools)) tools.set(name, READ_RESOURCE);
  return { tools: [...tools.values()], taskTools, warnings, ttlMs };
}

function lengthOf({ description, inputSchemaJson, outputSchemaJson, icons }: Tool): number {
  const texts = [description, inputSchemaJson, outputSchemaJson, ...icons.map(({ src }) => src)];
  return texts.reduce((sum, { length }) => sum + length, 0);
}

interface Listing {
  readonly signal: AbortSignal;
  readonly warnings: string[];
  readonly onPage: (page: Record<string, unknown>) => void;
}

async function* listedTools(client: Client, { signal, warnings, onPage }: Listing): AsyncGenerator<unknown> {
  if (!client.getServerCapabilities()?.tools) return;
  const ask = (params: object) =>
    client.request({ method: "tools/list", params: { ...params } }, pageSchema, { signal });
  for await (const page of pagesOf(ask, MAX_PAGES, (why) => warnings.push(why))) {
    onPage(page);
    yield* page.tools;
  }
}
