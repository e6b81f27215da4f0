import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FileRegistry } from "@bufbuild/protobuf";
import { agentSpelling } from "#runtime/agent-file/agent-spelling.ts";
import type { JsonSchema, Spelling } from "#runtime/agent-file/spelling.ts";
import { toolSpelling } from "#runtime/agent-file/tool-spelling.ts";
import { projectRoot, runCommand } from "../command.ts";
import { publicContract, registryFrom } from "../contract.ts";
import { type ContractSchema, messageSchema } from "./message-schema.ts";

interface Form {
  readonly file: string;
  /** What a file holds. */
  readonly message: string;
  readonly spelling: Spelling;
}

const forms: readonly Form[] = [
  { file: "agent.schema.json", message: "toolbus.agent.v1.Agent", spelling: agentSpelling },
  { file: "tool.schema.json", message: "toolbus.tool.v1.Tool", spelling: toolSpelling },
];

/**
 * JSON Schemas of the files that people write, for editors and for the services that read them: Buf's generator says the
 * contract's JSON, and the spelling that the readers use says what files write otherwise.
 */
export async function generateJsonSchemas(root: string, workFolder: string): Promise<void> {
  const template = join(projectRoot, "tools", "gen", "jsonschema", "jsonschema.gen.yaml");
  const [contract] = await Promise.all([
    publicContract(root),
    runCommand("buf", ["generate", "--template", template, "--output", workFolder], { cwd: root }),
  ]);
  const types = registryFrom(contract);
  const output = join(workFolder, "gen", "jsonschema");
  await mkdir(output, { recursive: true });
  for (const form of forms) {
    if (types.getMessage(form.message) === undefined) continue; // another contract than the project's
    const schema = await schemaOfForm(form, types, join(workFolder, "messages"));
    await writeFile(join(output, form.file), `${JSON.stringify(schema, null, 2)}\n`);
  }
}

/** One document: the form of its message, and of every message that this needs. */
async function schemaOfForm({ message, spelling }: Form, types: FileRegistry, folder: string): Promise<JsonSchema> {
  const schemaOf = async (name: string) => {
    const type = types.getMessage(name);
    if (type === undefined) throw new Error(`No message of the contract is called ${name}`);
    const text = await readFile(join(folder, `${name}.jsonschema.strict.json`), "utf8");
    return messageSchema(type, JSON.parse(text) as ContractSchema, spelling, types);
  };
  const root = await schemaOf(message);
  const definitions = new Map<string, JsonSchema>();
  let missing = referencesIn(root);
  while (missing.length > 0) {
    const found = await Promise.all(missing.map(async (name) => [name, await schemaOf(name)] as const));
    for (const [name, schema] of found) definitions.set(name, schema);
    missing = found.flatMap(([, schema]) => referencesIn(schema)).filter((name) => !definitions.has(name));
  }
  const $defs = Object.fromEntries([...definitions].sort(([one], [other]) => (one < other ? -1 : 1)));
  return { $schema: "https://json-schema.org/draft/2020-12/schema", ...root, $defs };
}

function referencesIn(schema: JsonSchema): string[] {
  return [...JSON.stringify(schema).matchAll(/"\$ref":"#\/\$defs\/([\w.]+)"/g)].map(([, name = ""]) => name);
}
