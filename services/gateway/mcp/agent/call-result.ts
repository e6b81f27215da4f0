import type { CallToolResult } from "@modelcontextprotocol/server";
import type { CallToolResult as Answer } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { errorTextOf } from "#runtime/results/error-result.ts";
import { parseExactly } from "#runtime/schema/json/exact-json.ts";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import { type BlockForm, begun, blocksFrom, MAX_TEXT, textBlock } from "./result-blocks.ts";

/** What stands behind a result, and what its client can read. */
export interface ResultForm extends BlockForm {
  readonly callId: string;
  /** Whether clients check the result against a schema that they were listed. */
  readonly hasSchema: () => Promise<boolean>;
}

/**
 * A result of a call as MCP clients read it: the text as it is in the contract, an object as `structuredContent` too, and the
 * blocks of an MCP server as that server sent them, pictures and all. Of one that is too large for a model the client gets the
 * beginning, and a link to the whole where that is kept.
 */
export async function resultFrom(answer: Answer, form: ResultForm): Promise<CallToolResult> {
  const told = await toldFrom(answer, form);
  return answer.metaJson === "" ? told : { ...told, _meta: fieldsOf(parseExactly(answer.metaJson)) };
}

async function toldFrom(answer: Answer, form: ResultForm): Promise<CallToolResult> {
  const { outputJson, storedReference, isError, content } = answer;
  const output: unknown = JSON.parse(outputJson || "null");
  const failed = isError && { isError };
  if (storedReference !== "") {
    const reference = { case: "storedReference", value: storedReference } as const;
    const blocks =
      content.length > 0 ? await blocksFrom(content, form) : begun(beginningOf(output, outputJson), reference, form);
    return { content: blocks, ...((isError || (await form.hasSchema())) && { isError: true }) }; // no whole fits the schema
  }
  const isStructured = !isError && isObject(output) && !isOnlyBlocks(answer);
  const structured = isStructured && { structuredContent: parseExactly(outputJson) };
  if (content.length > 0) return { content: await blocksFrom(content, form), ...structured, ...failed };
  const text = isError ? errorTextOf(outputJson) : typeof output === "string" ? output : outputJson;
  if (text.length > MAX_TEXT && !(await form.hasSchema()) && (await form.results.isKept(form.callId)))
    return { content: begun(text.slice(0, MAX_TEXT), { case: "callId", value: form.callId }, form), ...failed };
  return { content: [textBlock(text)], ...structured, ...failed };
}

/** Where a tool answered by blocks alone, the contract tells of them in this form. */
function isOnlyBlocks({ content, outputJson }: Answer): boolean {
  return content.length > 0 && outputJson.startsWith('{"content":[');
}

/** As the contract tells of a result that is stored elsewhere. */
function beginningOf(output: unknown, outputJson: string): string {
  if (isObject(output) && typeof output.beginning === "string") return output.beginning;
  return errorTextOf(outputJson);
}
