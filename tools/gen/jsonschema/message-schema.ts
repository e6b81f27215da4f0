import { create, type DescField, type DescMessage, type Registry } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import {
  DURATION,
  isDuration,
  isLong,
  type JsonSchema,
  LONG,
  namesOf,
  type Spelling,
} from "#runtime/agent-file/spelling.ts";

/** The generator's schema of a message's JSON. */
export interface ContractSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly [keyword: string]: unknown;
}

/** The form of a message in files, from that of the contract's JSON. References are to `#/$defs/<full name>`. */
export function messageSchema(
  message: DescMessage,
  contract: ContractSchema,
  spelling: Spelling,
  types: Registry,
): JsonSchema {
  const { $id: _id, $schema: _schema, required: _required, properties: own = {}, ...rest } = contract;
  if (message.typeName.startsWith("google.protobuf.")) return { ...rest };
  const { schema = {}, optional = [] } = spelling[message.typeName] ?? {};
  refuseUnknown(message, spelling);
  const properties = Object.fromEntries([
    ...spelledAnew(message, spelling),
    ...message.fields.flatMap((field) => waysToWrite(field, fieldSchema(field, own[field.jsonName] ?? {}), spelling)),
  ]);
  const required = mustBeSet(message, types).filter((name) => name in properties && !optional.includes(name));
  return { ...tidy(rest), properties, ...(required.length > 0 && { required }), ...schema };
}

/** A spelling of a field that is gone would be passed over without a word. */
function refuseUnknown(message: DescMessage, spelling: Spelling): void {
  const { fields = {}, omitted = [], optional = [] } = spelling[message.typeName] ?? {};
  const meant = Object.values(fields).flatMap(({ field }) => field ?? []);
  const known = new Set(message.fields.map(({ jsonName }) => jsonName));
  const unknown = [...meant, ...omitted, ...optional].find((name) => !known.has(name));
  if (unknown !== undefined) throw new Error(`The spelling of files names ${unknown}, which ${message.typeName} lacks`);
}

type Property = [name: string, schema: JsonSchema];

/** What is no field of the message. */
function spelledAnew(message: DescMessage, spelling: Spelling): Property[] {
  const { fields = {} } = spelling[message.typeName] ?? {};
  return Object.entries(fields).flatMap(([name, { field, schema }]): Property[] =>
    field === undefined ? [[name, schema({})]] : [],
  );
}

function waysToWrite(field: DescField, own: JsonSchema, spelling: Spelling): Property[] {
  const { fields = {}, omitted = [] } = spelling[field.parent.typeName] ?? {};
  if (omitted.includes(field.jsonName)) return [];
  const ways = Object.entries(fields).filter(([, one]) => one.field === field.jsonName);
  if (ways.length === 0) return [[field.jsonName, own]];
  return ways.map(([name, { schema }]) => [name, schema(own)]);
}

/** The three rules of all files: durations, integers of 64 bits and enums. */
function fieldSchema(field: DescField, contract: JsonSchema): JsonSchema {
  const { description, ...rest } = tidy(contract);
  const ofItem = formOfItem(field);
  const schema = ofItem === undefined ? rest : withItems(field, rest, ofItem);
  return { ...(description !== undefined && { description }), ...schema };
}

function formOfItem(field: DescField): JsonSchema | undefined {
  if (isDuration(field)) return DURATION;
  if (isLong(field)) return LONG;
  return field.enum && { type: "string", enum: namesOf(field.enum) };
}

function withItems(field: DescField, contract: JsonSchema, item: JsonSchema): JsonSchema {
  if (field.fieldKind === "list") return { ...contract, items: item };
  return field.fieldKind === "map" ? { ...contract, additionalProperties: item } : item;
}

/** Fields without which the contract refuses the message. In JSON, what is zero may always be left out. */
export function mustBeSet(message: DescMessage, types: Registry): string[] {
  const { violations = [] } = createValidator({ registry: types }).validate(message, create(message));
  const names = violations.flatMap(({ field: [first, ...deeper] }) =>
    first?.kind === "field" && deeper.length === 0 ? [first.jsonName] : [],
  );
  return [...new Set(names)];
}

/** References and descriptions as files of this project have them. */
export function tidy(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, tidyKeyword(keyword, value)]));
}

const reference = /^(.+)\.jsonschema\.strict\.json$/;

function tidyKeyword(keyword: string, value: unknown): unknown {
  if (keyword === "$ref") return String(value).replace(reference, "#/$$defs/$1");
  if (keyword === "description") return String(value).replaceAll(/\s+/g, " ");
  const isSchema = typeof value === "object" && value !== null && !Array.isArray(value);
  return isSchema ? tidy(value as JsonSchema) : value;
}
