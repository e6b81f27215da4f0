import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { z } from "zod";
import { type RunOptionsSchema, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import { inForm } from "#runtime/schema/zod-form.ts";
import type { CreateBody, Typed } from "./body.ts";

/** Options of a run, as they are written. */
export type Options = Exclude<MessageInitShape<typeof RunOptionsSchema>, MessageShape<typeof RunOptionsSchema>>;

const functionTool = z.looseObject({
  name: z.string(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
});
const namesOfTools = z.array(z.string());
const mcpTool = z.looseObject({
  server_label: z.string().regex(/^[a-zA-Z0-9_.-]{1,64}$/, "must be 1 to 64 of a-z, A-Z, 0-9, _, . and -"),
  server_url: z.string({ error: "must be the address of the server" }),
  headers: z.record(z.string(), z.string()).nullish(),
  authorization: z.string().nullish(),
  allowed_tools: z.union([namesOfTools, z.looseObject({ tool_names: namesOfTools.optional() })]).nullish(),
  require_approval: z.literal("never", {
    error: 'must be "never": nobody is asked before the tools of a server that a request brings are called',
  }),
});

/** A group of functions. The agent knows each as `<namespace>__<name>`. */
const member = z.looseObject({ type: z.string(), name: z.string() });
const namespaceTool = z.looseObject({ name: z.string(), tools: z.array(member) });
export const nameWithin = (namespace: string | null | undefined, name: string) =>
  namespace ? `${namespace}__${name}` : name;

/** The tools that a request brings, and how they are to be used. */
export function toolOptionsFrom({ tools, tool_choice: choice, allowed_tools: names }: CreateBody): Options {
  const given = toolsOf(tools);
  const of = (type: string) => given.filter(({ tool }) => tool.type === type);
  const unserved = given.find(({ tool }) => tool.type !== "function" && tool.type !== "mcp");
  if (unserved !== undefined)
    refuseField(
      `${unserved.place}.type`,
      `${JSON.stringify(unserved.tool.type)} is not offered: an agent has its own tools`,
    );
  const chosen = choiceFrom(choice);
  if (names?.length && chosen.allowedTools)
    refuseField("allowed_tools", "is in tool_choice already: leave one of both out");
  return {
    functionTools: of("function").map(({ tool, place }) => functionToolFrom(inForm(functionTool, tool, place))),
    mcpServers: of("mcp").map(({ tool, place }) => serverFrom(inForm(mcpTool, tool, place))),
    ...(names?.length && { allowedTools: { names } }),
    ...chosen,
  };
}

function toolsOf(tools: CreateBody["tools"]): { tool: Typed; place: string; namespace?: string }[] {
  return (tools ?? []).flatMap((tool, n) => {
    const place = `tools[${n}]`;
    if (tool.type !== "namespace") return [{ tool, place }];
    const { name: namespace, tools: inner } = inForm(namespaceTool, tool, place);
    const named = inner.map((one) => ({ ...one, name: nameWithin(namespace, one.name) }));
    return named.map((one, at) => ({ tool: one, place: `${place}.tools[${at}]`, namespace }));
  });
}

/** The namespaces of functions, by the names that the agent knows these by. */
export function namespacesFrom({ tools }: Pick<CreateBody, "tools">): Record<string, string> {
  const grouped = toolsOf(tools).flatMap(({ tool, namespace }) => (namespace ? [[tool.name, namespace]] : []));
  return Object.fromEntries(grouped);
}

function functionToolFrom({ name, description, parameters }: z.infer<typeof functionTool>) {
  return { name, description: description ?? "", inputSchemaJson: parameters ? JSON.stringify(parameters) : "" };
}

function serverFrom(given: z.infer<typeof mcpTool>): NonNullable<Options["mcpServers"]>[number] {
  const { server_label: name, server_url: url, authorization, allowed_tools: allowed } = given;
  const headers = { ...given.headers, ...(authorization && { Authorization: `Bearer ${authorization}` }) };
  const names = Array.isArray(allowed) ? allowed : allowed?.tool_names;
  return { name, transport: { case: "http", value: { url, headers } }, ...(names && { allowedTools: { names } }) };
}

const MODES = { none: ToolChoiceMode.NONE, auto: ToolChoiceMode.AUTO, required: ToolChoiceMode.REQUIRED };
const namedTool = z.looseObject({
  type: z.enum(["function", "mcp"]),
  name: z.string(),
  server_label: z.string().optional(),
});
const allowedTools = z.looseObject({ mode: z.enum(["none", "auto", "required"]).nullish(), tools: z.array(namedTool) });

function choiceFrom(choice: CreateBody["tool_choice"]): Options {
  if (choice === undefined || choice === null) return {};
  if (typeof choice === "string") return { toolChoice: modeOf(choice) };
  if (choice.type !== "allowed_tools") return { toolChoice: forced(choice) };
  const { mode, tools } = inForm(allowedTools, choice, "tool_choice");
  return { toolChoice: modeOf(mode ?? "auto"), allowedTools: { names: tools.map(referenceOf) } };
}

function modeOf(mode: keyof typeof MODES): Options["toolChoice"] {
  return { choice: { case: "mode", value: MODES[mode] } };
}

function forced(choice: Typed): Options["toolChoice"] {
  return { choice: { case: "forcedTool", value: referenceOf(inForm(namedTool, choice, "tool_choice")) } };
}

/** A tool of a server that the request brings has a name there. */
function referenceOf({ type, name, server_label: label }: z.infer<typeof namedTool>): string {
  return type === "mcp" && label !== undefined ? `@${label}/${name}` : name;
}
