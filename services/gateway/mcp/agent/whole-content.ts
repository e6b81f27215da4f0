import type { CallOptions, Client } from "@connectrpc/connect";
import type { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { ResultContent } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResult } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { jsonOfBlocks } from "#runtime/results/content.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import type { Tools } from "./tool-list.ts";

type Calls = Pick<Client<typeof ToolCallService>, "readResult">;

/** Tools whose results that are blocks of content hold their bytes, as MCP's clients read them. */
export function toolsWithBytes(tools: Tools, calls: Calls): Tools {
  return {
    listTools: (request, options) => tools.listTools(request, options),
    async *callTool(request, options) {
      for await (const response of tools.callTool(request, options)) {
        const { event } = response;
        if (event.case !== "result") yield response;
        else yield { ...response, event: { case: "result", value: await withBytes(event.value, calls, options) } };
      }
    },
  };
}

async function withBytes(result: CallToolResult, calls: Calls, options: CallOptions = {}): Promise<CallToolResult> {
  const { content, outputJson } = result;
  if (content.length === 0 || outputJson !== jsonOfBlocks(content)) return result;
  const blocks = await Promise.all(content.map((block) => wholeBlocks(block, calls, options)));
  return { ...result, outputJson: JSON.stringify({ content: blocks.flat() }) };
}

async function wholeBlocks({ blockJson, storedReference }: ResultContent, calls: Calls, options: CallOptions) {
  const block = JSON.parse(blockJson) as Record<string, unknown>;
  if (storedReference === "") return [block];
  const bytes = await read(storedReference, calls, options);
  if (bytes === undefined) return [{ ...block, storedReference }]; // not kept any more
  if (block.type === "text") return [{ ...block, text: bytes.toString() }];
  if (block.type === "more") return JSON.parse(bytes.toString()) as Record<string, unknown>[];
  const data = bytes.toString("base64");
  return [isObject(block.resource) ? { ...block, resource: { ...block.resource, blob: data } } : { ...block, data }];
}

async function read(reference: string, calls: Calls, options: CallOptions): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  try {
    const result = { case: "storedReference" as const, value: reference };
    for await (const { part } of calls.readResult({ result }, options))
      if (part.case === "chunk") chunks.push(part.value.data);
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}
