import { create } from "@bufbuild/protobuf";
import type { CallToolResult } from "@modelcontextprotocol/client";
import { z } from "zod";
import { Effect, ExecutionType, type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** Asks the server; rejects with whatever the SDK says. */
export type Ask = (method: string, params: Record<string, unknown>) => Promise<Record<string, unknown>>;

/** The tool that every server with resources has, unless it has one of that name or its entry omits it. */
export const READ_RESOURCE: Tool = create(ToolSchema, {
  name: "read_resource",
  description:
    "Reads a resource of this server by its URI, as lists of resources, templates and the links in results of the server's tools tell it. Without a URI, lists the resources and the templates of URIs.",
  inputSchemaJson: JSON.stringify({
    type: "object",
    properties: {
      uri: { type: "string", minLength: 1, maxLength: 65_536, description: "The resource; absent lists." },
    },
    additionalProperties: false,
  }),
  executionType: ExecutionType.MCP,
  effect: Effect.PURE,
  annotations: { title: "Read a resource", readOnlyHint: true },
});

/** A list for a model is no longer than this. */
const MOST_LISTED = 200;

const contents = z.looseObject({
  contents: z.array(
    z.looseObject({
      uri: z.string(),
      mimeType: z.string().nullish(),
      text: z.string().nullish(),
      blob: z.string().nullish(),
    }),
  ),
});

export async function readResource(ask: Ask, { uri }: Record<string, unknown>): Promise<CallToolResult> {
  if (typeof uri !== "string") return listed(ask);
  const read = contents.safeParse(await ask("resources/read", { uri }));
  if (read.success) return { content: read.data.contents.map(blockOf) };
  return { isError: true, content: [{ type: "text", text: `what the server answered is no resource: ${read.error}` }] };
}

type Block = CallToolResult["content"][number];

function blockOf({ uri, mimeType, text, blob }: z.infer<typeof contents>["contents"][number]): Block {
  if (typeof text === "string") return { type: "text", text };
  const type = mimeType ?? "application/octet-stream";
  const data = blob ?? "";
  if (type.startsWith("image/")) return { type: "image", data, mimeType: type };
  if (type.startsWith("audio/")) return { type: "audio", data, mimeType: type };
  return { type: "resource", resource: { uri, mimeType: type, blob: data } };
}

async function listed(ask: Ask): Promise<CallToolResult> {
  const { resources = [], nextCursor } = await ask("resources/list", {});
  // servers without templates may not know the question
  const { resourceTemplates = [] } = await ask("resources/templates/list", {}).catch(() => ({ resourceTemplates: [] }));
  const [some, templates] = [firstOf(resources), firstOf(resourceTemplates)];
  const isWhole =
    !nextCursor && some.length === lengthOf(resources) && templates.length === lengthOf(resourceTemplates);
  const structuredContent = { resources: some, resourceTemplates: templates, ...(!isWhole && { more: true }) };
  return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
}

const lengthOf = (list: unknown) => (Array.isArray(list) ? list.length : 0);
const firstOf = (list: unknown): unknown[] => (Array.isArray(list) ? list.slice(0, MOST_LISTED) : []);
