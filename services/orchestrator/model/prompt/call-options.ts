import type { JSONValue, LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import {
  type JsonOutput,
  type ModelSettings,
  ReasoningEffort,
  ReasoningEffortSchema,
} from "#gen/toolbus/run/v1/model_settings_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { partAt } from "#runtime/schema/cost/effort.ts";
import { fieldsOf, filled, isJsonSchema, isObject, type JsonSchema } from "#runtime/schema/json-object.ts";
import { JSON_SCHEMA } from "../providers/model-source.ts";
import { parsedOr } from "./result-output.ts";
import { TOOL_IMAGES } from "./stored-images.ts";

/** Options that the AI SDK has a name of its own for, which the contract spells with underscores. */
const standardNames: ReadonlySet<string> = new Set<keyof LanguageModelV4CallOptions>([
  "temperature",
  "topP",
  "topK",
  "maxOutputTokens",
  "presencePenalty",
  "frequencyPenalty",
  "stopSequences",
  "seed",
  "reasoning",
]);

/** The options of an agent's model: those that every provider knows, the others for the provider alone. */
export function callOptionsFromModelOptions(
  provider: string,
  options: Readonly<Record<string, JSONValue>> = {},
): Partial<LanguageModelV4CallOptions> {
  const standard: Record<string, JSONValue> = {};
  const own: Record<string, JSONValue> = {};
  for (const [name, value] of Object.entries(options)) {
    if (name === TOOL_IMAGES || (name === JSON_SCHEMA && typeof value === "boolean")) continue;
    const known = name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
    if (standardNames.has(known)) standard[known] = value;
    else own[name] = value;
  }
  return { ...standard, ...(Object.keys(own).length > 0 && { providerOptions: { [optionsKey(provider)]: own } }) };
}

/** What a run asks of its model. `spent` are the tokens that its models have written. */
export function callOptionsFromSettings(
  settings: ModelSettings | undefined,
  own: Pick<LanguageModelV4CallOptions, "maxOutputTokens">,
  spent: bigint,
): Partial<LanguageModelV4CallOptions> {
  if (settings === undefined) return {};
  const { temperature, topP, presencePenalty, frequencyPenalty, maxOutputTokens, reasoningEffort } = settings;
  const { jsonOutput, stopSequences } = settings;
  const effort =
    reasoningEffort === ReasoningEffort.UNSPECIFIED ? undefined : ReasoningEffortSchema.value[reasoningEffort];
  const reasoning = effort?.localName.toLowerCase() as LanguageModelV4CallOptions["reasoning"];
  const left = maxOutputTokens === undefined ? undefined : Math.max(1, maxOutputTokens - Number(spent));
  return filled({
    ...{ temperature, topP, presencePenalty, frequencyPenalty, reasoning },
    maxOutputTokens: left && Math.min(left, own.maxOutputTokens ?? left),
    responseFormat: jsonOutput && formatFrom(jsonOutput),
    stopSequences,
  });
}

function formatFrom({ schemaJson, name, description }: JsonOutput) {
  const schema = schemaJson === "" ? undefined : schemaFromJson(schemaJson);
  return { type: "json" as const, ...filled({ schema, name, description }) };
}

/** A package of the AI SDK knows its own options under its short name. */
function optionsKey(provider: string): string {
  return provider.replace(/^@ai-sdk\//, "");
}

/** What a model gets of a tool beside its name. */
type ToolDescription = Pick<Tool, "description" | "inputSchemaJson">;

/** A tool as the model gets it. */
export function modelToolFromTool(name: string, tool: ToolDescription | undefined): LanguageModelV4FunctionTool {
  const inputSchema = plainSchema(schemaFromJson(tool?.inputSchemaJson ?? ""));
  return { type: "function", name, description: tool?.description ?? "", inputSchema };
}

type Schema = LanguageModelV4FunctionTool["inputSchema"];

/**
 * Providers refuse every request that has a tool whose schema is not of one object with properties. The model is told those of all
 * alternatives together: the router holds its arguments against the schema as it is, and says what is wrong with them. Each part is
 * read once and without recursion, as far as it is what it should be: nobody has checked the shape of a schema of an MCP server.
 */
function plainSchema(root: Schema): Schema {
  const needed = new Set<Fields>([root]);
  for (const part of needed) for (const one of needsOf(part, root)) needed.add(one);
  const parts = new Set(needed);
  for (const part of parts) for (const one of [...needsOf(part, root), ...alternativesOf(part)]) parts.add(one);
  const told = [...needed].reverse().flatMap((part) => Object.entries(part));
  const own = Object.fromEntries(told.filter(([name]) => !leftOut.has(name)));
  const names = [...needed].flatMap((part) => listOf(part.required)).filter((name) => typeof name === "string");
  const properties = propertiesOf(parts);
  return { ...own, type: "object", properties, ...(names.length > 0 && { required: [...new Set(names)] }) };
}

type Fields = Readonly<Record<string, unknown>>;

const leftOut: ReadonlySet<string> = new Set(["$ref", "allOf", "anyOf", "oneOf", "not", "enum", "required"]);

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function needsOf({ $ref, allOf }: Fields, root: Schema) {
  const referred = typeof $ref === "string" && $ref.startsWith("#/") ? partAt(root, $ref) : undefined;
  return [referred, ...listOf(allOf)].filter(isObject);
}

const alternativesOf = ({ anyOf, oneOf }: Fields) => [...listOf(anyOf), ...listOf(oneOf)].filter(isObject);

function propertiesOf(parts: Iterable<Fields>) {
  const told = new Map<string, JsonSchema[]>();
  for (const [name, one] of [...parts].flatMap(({ properties }) => Object.entries(fieldsOf(properties))))
    if (isJsonSchema(one)) getOrInsertComputed(told, name, () => []).push(one);
  return Object.fromEntries([...told].map(([name, all]) => [name, eitherOf(all)])) as Schema["properties"];
}

function eitherOf(all: readonly JsonSchema[]) {
  if (all.length === 1) return all[0];
  const different = [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
  return different.length === 1 ? different[0] : { anyOf: different };
}

/** The router validates arguments: a schema that nobody can read leaves the model free to try. */
function schemaFromJson(text: string): Schema {
  const schema = parsedOr(text, undefined);
  return isObject(schema) ? schema : { type: "object" };
}
