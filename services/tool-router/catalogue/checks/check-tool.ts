import { ExecutionType, ExecutionTypeSchema, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { BUILT_IN_NAMES } from "#runtime/agent-file/built-ins.ts";
import { NAME_WORDS, TOOL_NAME } from "#runtime/agent-file/tool-spelling.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { faultOfToolSchema } from "#runtime/schema/json-schema/tool-schema.ts";
import type { Validator } from "#runtime/schema/json-schema/validator.ts";
import { CATALOGUE_KINDS } from "../../tools/tool-set/executor.ts";
import { faultsOfHeaders } from "./check-headers.ts";
import { faultsOfProvided } from "./check-provided.ts";

export interface ToolCheck {
  validator: Validator;
  hasProvider: (name: string) => boolean;
  /** By name, for headers. */
  secrets: ReadonlyMap<string, string>;
}

/** TOOL-1: everything that is wrong with a tool of the catalogue, each fault with its path. */
export async function faultsOfTool(tool: Tool, { validator, hasProvider, secrets }: ToolCheck): Promise<string[]> {
  const faults: string[] = [];
  const { name, executionType: kind, execution, customType } = tool;
  const url = execution?.url ?? "";
  const isLongEnough = name.length > 0 && name.length <= 64;
  if (!isLongEnough || !TOOL_NAME.test(name)) faults.push(`name: ${NAME_WORDS}`);
  if (BUILT_IN_NAMES.has(name)) faults.push(`name: ${name} is the name of a built-in`);
  if (!CATALOGUE_KINDS.has(kind)) faults.push(`executionType: ${faultOfKind(kind)}`);
  if (kind === ExecutionType.GATEWAY && url === "") faults.push("execution.url: a gateway tool needs a URL");
  if (url !== "" && !isWebUrl(url))
    faults.push("execution.url: must be an absolute http or https URL without user and password");
  if (/[{}]/.test(url))
    faults.push("execution.url: is no template: arguments go into query or body, secrets into headers");
  if (["CONNECT", "TRACE"].includes(execution?.method ?? ""))
    faults.push(`execution.method: ${execution?.method} is no method of a tool`);
  if (url !== "") faults.push(...faultsOfHeaders(execution?.headers ?? {}, secrets));
  if (url !== "" && tool.isAsync) faults.push("isAsync: a tool with a URL answers at once");
  if (tool.grants !== undefined && kind !== ExecutionType.EXTERNAL)
    faults.push("grants: only calls of a tool of kind external are watched for; an agent is granted by its own grants");
  if (kind === ExecutionType.SPACE && tool.visible === false) faults.push("visible: a space tool is always visible");
  if (kind === ExecutionType.CUSTOM) faults.push(...faultsOfCustomType(customType, hasProvider));
  if (url === "") faults.push(...faultsOfProvided(tool));
  for (const [path, text, place] of [
    ["inputSchema", tool.inputSchemaJson, "arguments"],
    ["outputSchema", tool.outputSchemaJson, "results"],
  ] as const) {
    const faultOf = () => validator.faultOfSchema(text, CATALOGUE);
    const fault = text && (await faultOfToolSchema(text, place, faultOf));
    if (fault) faults.push(`${path}: ${fault}`);
  }
  return faults;
}

/** Checks of the catalogue wait for each other. */
const CATALOGUE = "catalogue";

function faultOfKind(kind: ExecutionType): string {
  if (kind === ExecutionType.UNSPECIFIED) return "is missing";
  return `${enumWord(ExecutionTypeSchema, kind)} tools come from sources, callers and runs, not from the catalogue`;
}

/** KIND-3. */
function faultsOfCustomType(customType: Tool["customType"], hasProvider: (name: string) => boolean): string[] {
  const { provider = "", toolType = "" } = customType ?? {};
  if (provider === "" || toolType === "") return ["executionType: a custom type is written provider:tool_type"];
  return hasProvider(provider) ? [] : [`executionType: there is no provider ${JSON.stringify(provider)}`];
}

function isWebUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return url.protocol === "http:" || url.protocol === "https:";
}
