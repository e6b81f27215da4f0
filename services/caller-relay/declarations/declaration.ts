import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CallerDeclaration, CallerTool } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { ExecutionType, type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { ModelTool } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { BUILT_IN_NAMES } from "#runtime/agent-file/built-ins.ts";
import { type ReasonName, refuse } from "#runtime/failure/failure.ts";
import { openSlices } from "#runtime/rpc/handling/messages/slices.ts";
import { type FaultOfSchema, faultOfToolSchema } from "#runtime/schema/json-schema/tool-schema.ts";

const callableName = /^[a-zA-Z0-9_-]{1,64}$/;

/** The name by which the agent sees a tool of its caller. */
function prefixedName(declaration: CallerDeclaration, tool: CallerTool): string {
  return `${declaration.callerId}_${tool.name}`;
}

/** The names that the agent sees. Refuses the whole declaration when one tool cannot be offered; says both its names. */
export function namesFromDeclaration(declaration: CallerDeclaration): string[] {
  const toolsByName = new Map<string, CallerTool>();
  for (const [index, tool] of declaration.tools.entries()) {
    const name = prefixedName(declaration, tool);
    const refuseName = (reason: ReasonName, why: string) => refuseTool(declaration, index, { reason, why });
    if (!callableName.test(name)) refuseName("INVALID_REQUEST", "is not named by 1 to 64 letters, digits, _ or -");
    if (name.includes("__"))
      refuseName(
        "INVALID_REQUEST",
        'holds "__", which stands between a source and its tool: the agent would see another name in its place',
      );
    if (BUILT_IN_NAMES.has(name)) refuseName("TOOL_NAME_TAKEN", `collides with the built-in tool "${name}"`);
    const other = toolsByName.get(name);
    if (other) refuseName("TOOL_NAME_TAKEN", `collides with "${other.name}" of the same declaration`);
    toolsByName.set(name, tool);
  }
  return [...toolsByName.keys()];
}

/** Refuses the whole declaration when the agent has another tool of one of its names, or an alias. */
export function requireFreeNames(declaration: CallerDeclaration, tools: readonly ModelTool[]): void {
  const others = tools.filter(({ tool }) => tool?.executionType !== ExecutionType.CALLER);
  const references = new Map<string, string>();
  for (const { modelName, reference, aliases } of others)
    for (const name of [modelName, reference, ...aliases]) references.set(name, reference);
  for (const [index, tool] of declaration.tools.entries()) {
    const taken = references.get(prefixedName(declaration, tool));
    const why = `collides with the agent's tool "${taken}"`;
    if (taken !== undefined) refuseTool(declaration, index, { reason: "TOOL_NAME_TAKEN", why });
  }
}

/** Refuses the whole declaration when the schema of one tool's arguments cannot be used; an empty one means any object. */
export async function requireSchemas(declaration: CallerDeclaration, faultOf: FaultOfSchema): Promise<void> {
  const nextStep = openSlices();
  for (const [index, { inputSchemaJson }] of declaration.tools.entries()) {
    await nextStep();
    const fault = inputSchemaJson && (await faultOfToolSchema(inputSchemaJson, "arguments", faultOf));
    const why = `has an input schema that cannot be used: it ${fault}`;
    if (fault) refuseTool(declaration, index, { reason: "INVALID_REQUEST", why, part: "input_schema_json" });
  }
}

/** Says the tool's own name, and the one that the agent would see. */
function refuseTool(
  declaration: CallerDeclaration,
  index: number,
  { reason, why, part = "name" }: { reason: ReasonName; why: string; part?: string },
): never {
  const tool = declaration.tools[index]!;
  const message = `caller tool "${tool.name}", which the agent would see as "${prefixedName(declaration, tool)}", ${why}`;
  const field = `declaration.tools[${index}].${part}`;
  return refuse("invalid_argument", message, { reason, fieldViolations: [{ field, message }] });
}

export function toolsFromDeclaration(declaration: CallerDeclaration, defaultTimeoutMs: number): Tool[] {
  return declaration.tools.map((tool) =>
    create(ToolSchema, {
      name: prefixedName(declaration, tool),
      description: tool.description,
      inputSchemaJson: tool.inputSchemaJson || '{"type":"object"}',
      executionType: ExecutionType.CALLER,
      visible: false,
      timeout: tool.timeout ?? durationFromMs(defaultTimeoutMs),
    }),
  );
}

/** The tool that the agent sees under that name. */
export function findTool(declaration: CallerDeclaration, name: string): CallerTool | undefined {
  return declaration.tools.find((tool) => prefixedName(declaration, tool) === name);
}
