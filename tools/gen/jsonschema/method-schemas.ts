import type { DescMethod, FileRegistry } from "@bufbuild/protobuf";
import type { JsonSchema } from "#runtime/agent-file/spelling.ts";
import { type ContractSchema, mustBeSet, tidy } from "./message-schema.ts";

/** A method of the contract as a tool: the words of its comment, and the form of its request in the contract's JSON. */
export interface MethodSchema {
  readonly description: string;
  readonly inputSchema: JsonSchema;
}

/** The generator's schema of a message, by its full name. */
export type ReadSchema = (message: string) => Promise<ContractSchema>;

/** Each stands alone, without references: many clients of models read none. */
export async function methodSchema(method: DescMethod, types: FileRegistry, read: ReadSchema): Promise<MethodSchema> {
  const { description: _ofMessage, ...inputSchema } = await schemaOf(method.input.typeName, [], { types, read });
  return { description: wordsOf(method), inputSchema };
}

/** By its full name, `toolbus.run.v1.RunService.ListRuns`. */
export function methodOf(name: string, types: FileRegistry): DescMethod {
  const service = types.getService(name.slice(0, name.lastIndexOf(".")));
  const found = service?.methods.find((method) => name === `${service.typeName}.${method.name}`);
  if (found === undefined) throw new Error(`No method of the contract is called ${name}`);
  return found;
}

function wordsOf(method: DescMethod): string {
  const { parent: service } = method;
  const { sourceCodeInfo } = service.file.proto;
  const place = [6, service.file.services.indexOf(service), 2, service.methods.indexOf(method)].join(); // as descriptor.proto numbers them
  const comment = sourceCodeInfo?.location.find(({ path }) => path.join() === place)?.leadingComments ?? "";
  return comment.replaceAll(/\s+/g, " ").trim();
}

interface Contract {
  readonly types: FileRegistry;
  readonly read: ReadSchema;
}

async function schemaOf(name: string, within: readonly string[], contract: Contract): Promise<JsonSchema> {
  if (within.includes(name))
    throw new Error(`${name} holds itself, so that its form cannot be said without references`);
  const { $id, $schema, title, required, ...rest } = tidy(await contract.read(name));
  const message = name.startsWith("google.protobuf.") ? undefined : contract.types.getMessage(name);
  const needed = message ? mustBeSet(message, contract.types) : [];
  const whole = await withoutReferences(rest, [...within, name], contract);
  return { ...(whole as JsonSchema), ...(needed.length > 0 && { required: needed }) };
}

const reference = /^#\/\$defs\/(.+)$/;

async function withoutReferences(value: unknown, within: readonly string[], contract: Contract): Promise<unknown> {
  if (Array.isArray(value)) return Promise.all(value.map((one) => withoutReferences(one, within, contract)));
  if (typeof value !== "object" || value === null) return value;
  const { $ref, title, ...own } = value as Record<string, unknown>;
  const named = typeof $ref === "string" ? reference.exec($ref)?.[1] : undefined;
  const entries = Object.entries(typeof title === "string" ? own : value).filter(([keyword]) => keyword !== "$ref");
  const inlined = entries.map(async ([keyword, one]) => [keyword, await withoutReferences(one, within, contract)]);
  const rest = Object.fromEntries(await Promise.all(inlined)) as JsonSchema;
  return named === undefined ? rest : { ...(await schemaOf(named, within, contract)), ...rest };
}
