import { create, type JsonObject } from "@bufbuild/protobuf";
import { Effect, ExecutionType, type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createFileForm, object, type Parsed, STRINGS, TEXT, TEXTS } from "./file-form.ts";

const KINDS = {
  function: ExecutionType.FUNCTION,
  gateway: ExecutionType.GATEWAY,
  external: ExecutionType.EXTERNAL,
  space: ExecutionType.SPACE,
  internal: ExecutionType.INTERNAL,
  mcp: ExecutionType.MCP,
  worker: ExecutionType.WORKER,
  hosted: ExecutionType.HOSTED,
  builtin: ExecutionType.BUILTIN,
  caller: ExecutionType.CALLER,
} as const;

const EFFECTS = { pure: Effect.PURE, idempotent: Effect.IDEMPOTENT, at_most_once: Effect.AT_MOST_ONCE } as const;

const KIND = {
  type: "string",
  anyOf: [{ enum: Object.keys(KINDS) }, { pattern: "^[a-zA-Z0-9_-]{1,64}:[a-zA-Z0-9_.-]{1,64}$" }],
};
const MILLISECONDS = { type: "integer", minimum: 1, maximum: 4_294_967_295 };
const JSON_SCHEMA = { type: ["object", "boolean"] };

const TOOL = {
  ...object(
    {
      $schema: TEXT,
      name: { type: "string", minLength: 1, maxLength: 64 },
      description: TEXT,
      inputSchema: { type: "object" },
      outputSchema: JSON_SCHEMA,
      executionType: KIND,
      kind: KIND,
      visible: { type: "boolean" },
      isAsync: { type: "boolean" },
      timeout: MILLISECONDS,
      expires: MILLISECONDS,
      effect: { enum: Object.keys(EFFECTS) },
      config: { type: "object" },
      builtinPolicy: object({
        name: { enum: ["fs_read", "fs_write", "shell_exec"] },
        allowedPaths: STRINGS,
        allowedCommands: STRINGS,
        timeout: MILLISECONDS,
      }),
      execution: object({ url: TEXT, method: { type: "string", pattern: "^[A-Z]{1,16}$" }, headers: TEXTS }, ["url"]),
    },
    ["name"],
  ),
  oneOf: [{ required: ["executionType"] }, { required: ["kind"] }],
};

interface ToolFile {
  name: string;
  description?: string;
  inputSchema?: JsonObject;
  outputSchema?: JsonObject | boolean;
  executionType?: string;
  kind?: string;
  visible?: boolean;
  isAsync?: boolean;
  timeout?: number;
  expires?: number;
  effect?: keyof typeof EFFECTS;
  config?: JsonObject;
  builtinPolicy?: { name?: string; allowedPaths?: string[]; allowedCommands?: string[]; timeout?: number };
  execution?: { url: string; method?: string; headers?: Record<string, string> };
}

const form = createFileForm<ToolFile>(TOOL);

/** TOOL-1: a tool's file. */
export function parseToolFile(text: string): Parsed<Tool> {
  const parsed = form(text);
  if (parsed.kind === "parsed") return { kind: "parsed", value: toolFromFile(parsed.value) };
  const { faults, readable } = parsed;
  const hasKind = (readable?.executionType ?? readable?.kind) !== undefined; // by which the rest is judged
  return { kind: "faulty", faults, ...(readable && hasKind && { readable: toolFromFile(readable) }) };
}

function toolFromFile(file: ToolFile): Tool {
  const { name, description = "", inputSchema, outputSchema, isAsync = false, timeout = 0, expires = 0, effect } = file;
  const kind = file.executionType ?? file.kind ?? "";
  const policy = file.builtinPolicy;
  return create(ToolSchema, {
    name,
    description,
    inputSchemaJson: JSON.stringify(inputSchema ?? { type: "object" }),
    outputSchemaJson: outputSchema === undefined ? "" : JSON.stringify(outputSchema),
    executionType: kind.includes(":") ? ExecutionType.CUSTOM : KINDS[kind as keyof typeof KINDS],
    customType: kind.includes(":") ? kind : "",
    isAsync,
    timeoutMs: timeout,
    expiresMs: expires,
    effect: effect === undefined ? Effect.UNSPECIFIED : EFFECTS[effect],
    ...(file.visible !== undefined && { visible: file.visible }),
    ...(file.config && { config: file.config }),
    ...(file.execution && { execution: file.execution }),
    ...(policy && { builtinPolicy: { ...policy, name: policy.name ?? name, timeoutMs: policy.timeout ?? 0 } }),
  });
}
