import { type RunOptions, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";

/** The tools that the request brought. */
export function toolsFrom(options: RunOptions | undefined): object[] {
  const { functionTools = [], mcpServers = [] } = options ?? {};
  const functions = functionTools.map(({ name, description, inputSchemaJson }) => ({
    ...{ type: "function", name, description: description || null, strict: null },
    parameters: inputSchemaJson === "" ? null : JSON.parse(inputSchemaJson),
  }));
  const servers = mcpServers.map(({ name, transport, allowedTools }) => ({
    ...{ type: "mcp", server_label: name, require_approval: "never", headers: null },
    server_url: transport.case === "http" ? transport.value.url : null,
    allowed_tools: allowedTools?.names ?? null,
  }));
  return [...functions, ...servers];
}

export function toolChoiceFrom(options: RunOptions | undefined): string | object {
  const { toolChoice, allowedTools } = options ?? {};
  const choice = toolChoice?.choice;
  if (choice?.case === "forcedTool") return toolNamed(choice.value);
  const mode = MODES[choice?.value ?? ToolChoiceMode.AUTO] ?? "auto";
  return allowedTools === undefined ? mode : { type: "allowed_tools", mode, tools: allowedTools.names.map(toolNamed) };
}

function toolNamed(reference: string): object {
  const [, label, name] = /^@([^/]+)\/(.*)$/.exec(reference) ?? [];
  return name === undefined ? { type: "function", name: reference } : { type: "mcp", server_label: label, name };
}

const MODES: Partial<Record<ToolChoiceMode, string>> = {
  [ToolChoiceMode.NONE]: "none",
  [ToolChoiceMode.REQUIRED]: "required",
};
