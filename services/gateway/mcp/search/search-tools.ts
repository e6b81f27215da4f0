import type { CallToolResult, Tool as McpTool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { parseExactly } from "#runtime/schema/json/exact-json.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { inForm } from "#runtime/schema/zod-form.ts";
import type { ToolIndex } from "./tool-index.ts";

/*
 * Four tools in place of all: for agents whose tools are more than a client's model should have before it at all times. The client
 * asks for it by `?search=1`.
 */

export const SEARCH_INSTRUCTIONS =
  "The tools are not listed one by one: find them with search_tools, read how they are called with describe_tools, and call them with call_tool.";

const CALL = "call_tool";
/** Enough to choose by; describe_tools tells the rest. */
const MAX_SUMMARY = 200;
const PAGE = 200;
/** What is searched for runs on the thread of everybody. */
const MAX_QUERY = 1_000;

const searchForm = z.object({
  query: z.string().min(1).max(MAX_QUERY).describe("Words of what is to be done, in any order."),
  limit: z.int().min(1).max(50).default(10).describe("At most so many."),
});
const listForm = z.object({ after: z.string().default("").describe("The last name of the page before.") });
const describeForm = z.object({ names: z.array(z.string()).min(1).max(20) });
const callForm = z.object({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()).default({}).describe("As describe_tools says of the tool."),
});

type Answer = (index: ToolIndex, given: unknown) => object;

const summaryOf = ({ name, description = "" }: McpTool) => ({
  name,
  ...(description !== "" && { description: firstWords(description) }),
});

const ANSWERS: Readonly<Record<string, { form: z.ZodType; description: string; answer: Answer }>> = {
  search_tools: {
    form: searchForm,
    description:
      "Finds tools by words of what they do. Gives names and the beginnings of descriptions, the best first.",
    answer(index, given) {
      const { query, limit } = inForm(searchForm, given);
      return { tools: index.search(query, limit).map(summaryOf) };
    },
  },
  describe_tools: {
    form: describeForm,
    description: "Tells all there is to know of tools, with the schemas of their arguments.",
    answer(index, given) {
      const { names } = inForm(describeForm, given);
      const unknown = names.filter((name) => !index.byName.has(name));
      const tools = names.flatMap((name) => index.byName.get(name) ?? []);
      return { tools, ...(unknown.length > 0 && { unknown }) };
    },
  },
  list_tools: {
    form: listForm,
    description: `Lists the names of all tools, ${PAGE} at a time.`,
    answer(index, given) {
      const { after } = inForm(listForm, given);
      const rest = [...index.byName.keys()].filter((name) => name > after);
      return { names: rest.slice(0, PAGE), total: index.byName.size, isLast: rest.length <= PAGE };
    },
  },
};

/** What a client is listed that searches. */
export const SEARCH_TOOLS: readonly McpTool[] = [
  {
    ...listed(CALL, callForm, "Calls a tool by its name.", { openWorldHint: true }),
    execution: { taskSupport: "optional" },
  },
  ...Object.entries(ANSWERS).map(([name, { form, description }]) =>
    listed(name, form, description, { readOnlyHint: true, openWorldHint: false }),
  ),
];

function listed(name: string, form: z.ZodType, description: string, annotations: McpTool["annotations"]): McpTool {
  const { $schema: _dialect, ...inputSchema } = z.toJSONSchema(form, { io: "input" });
  return { name, description, inputSchema: inputSchema as McpTool["inputSchema"], annotations };
}

/** The answer to one of the three that look; undefined for a call. */
export async function searched(
  name: string,
  given: unknown,
  readIndex: () => Promise<ToolIndex>,
): Promise<CallToolResult | undefined> {
  const tool = Object.hasOwn(ANSWERS, name) ? ANSWERS[name] : undefined;
  if (tool === undefined) return undefined;
  const answer = tool.answer(await readIndex(), given);
  return { content: [{ type: "text", text: JSON.stringify(answer) }] };
}

/** What call_tool is to call; undefined for a call by the tool's own name. */
export function innerCall({ name, arguments: given }: Called, argumentsJson: string) {
  if (name !== CALL) return undefined;
  const inner = inForm(callForm, given);
  const written = parseExactly(argumentsJson);
  return { name: inner.name, argumentsJson: JSON.stringify((isObject(written) && written.arguments) || {}) };
}

interface Called {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

function firstWords(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length <= MAX_SUMMARY ? flat : `${flat.slice(0, MAX_SUMMARY).toWellFormed()}…`;
}
