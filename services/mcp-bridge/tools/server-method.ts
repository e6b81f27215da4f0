import type { CallToolResult } from "@modelcontextprotocol/client";
import { pagesOf } from "./content.ts";
import type { Ask } from "./read-resource.ts";

/** What is asked of a server beside calls of its tools, by whoever owns the session. */
export type ServerMethod =
  | "resources/list"
  | "resources/templates/list"
  | "resources/read"
  | "prompts/list"
  | "prompts/get"
  | "completion/complete";

/** It goes the way of a call, to the instance that has the connection. No tool that is offered has such a name. */
const PREFIX = "*";
const MAX_PAGES = 100;
const MOST_LISTED = 10_000;

export const toolOfMethod = (method: ServerMethod) => `${PREFIX}${method}`;

export function methodOfTool(tool: string): string | undefined {
  return tool.startsWith(PREFIX) ? tool.slice(PREFIX.length) : undefined;
}

/** The answer as it is; of a list, all pages in one, as far as anybody may want to read on, to be kept as long as the first of them. */
export async function askMethod(ask: Ask, method: string, params: Record<string, unknown>): Promise<CallToolResult> {
  const structuredContent = method.endsWith("/list") ? await wholeList(ask, method) : await ask(method, params);
  return { content: [], structuredContent };
}

async function wholeList(ask: Ask, method: string): Promise<Record<string, unknown>> {
  const items: unknown[] = [];
  let ttlMs: number | undefined;
  for await (const answer of pagesOf((params) => ask(method, params), MAX_PAGES)) {
    const listed: unknown[] = Object.values(answer).find(Array.isArray) ?? [];
    items.push(...listed.slice(0, MOST_LISTED));
    if (typeof answer.ttlMs === "number") ttlMs = Math.min(answer.ttlMs, ttlMs ?? answer.ttlMs);
    if (items.length >= MOST_LISTED) break;
  }
  return { items: items.slice(0, MOST_LISTED), ...(ttlMs !== undefined && { ttlMs }) };
}
