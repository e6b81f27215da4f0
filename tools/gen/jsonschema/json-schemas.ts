import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FileRegistry } from "@bufbuild/protobuf";
import { agentSpelling } from "#runtime/agent-file/agent-spelling.ts";
import type { JsonSchema, Spelling } from "#runtime/agent-file/spelling.ts";
import { toolSpelling } from "#runtime/agent-file/tool-spelling.ts";
import { EXPOSED } from "../../../services/gateway/mcp/suite/exposed.ts";
import { projectRoot, runCommand } from "../command.ts";
import { publicContract, registryFrom } from "../contract.ts";
import { formModule } from "./form-module.ts";
import { messageSchema } from "./message-schema.ts";
import { methodOf, methodSchema, type ReadSchema } from "./method-schemas.ts";

interface Form {
  readonly name: string;
  /** What a file holds. */
  readonly message: string;
  readonly spelling: Spelling;
}

const forms: readonly Form[] = [
  { name: "agent", message: "toolbus.agent.v1.Agent", spelling: agentSpelling },
  { name: "tool", message: "toolbus.tool.v1.Tool", spelling: toolSpelling },
];

/**
 * JSON Schemas of the files that people write, for editors, and compiled for the services that read them: Buf's generator says the
 * contract's JSON, and the spelling that the readers use says what files write otherwise. Those of requests that are tools for
 * MCP clients are the contract's JSON itself.
 */
export async function generateJsonSchemas(root: string, workFolder: string): Promise<void> {
  const template = join(projectRoot, "tools", "gen", "jsonschema", "jsonschema.gen.yaml");
  const [contract] = await Promise.all([
    publicContract(root),
    runCommand("buf", ["generate", "--template", template, "--output", workFolder], { cwd: root }),
  ]);
  const types = registryFrom(contract);
  const output = join(workFolder, "gen", "jsonschema");
  const modules = join(workFolder, "gen", "es", "forms");
  await Promise.all([output, modules].map((folder) => mkdir(folder, { recursive: true })));
  const read: ReadSchema = async (name) =>
    JSON.parse(await readFile(join(workFolder, "messages", `${name}.jsonschema.strict.json`), "utf8"));
  const write = (file: string, content: unknown) =>
    writeFile(join(output, file), `${JSON.stringify(content, null, 2)}\n`);
  for (const form of forms) {
    if (types.getMessage(form.message) === undefined) return; // another contract than the project's
    const schema = await schemaOfForm(form, types, read);
    await write(`${form.name}.schema.json`, schema);
    await writeFile(join(modules, `${form.name}-form.ts`), formModule(schema));
  }
  const methods = Object.keys(EXPOSED).map(async (name) => [
    name,
    await methodSchema(methodOf(name, types), types, read),
  ]);
  await write("suite-tools.json", Object.fromEntries(await Promise.all(methods)));
}

/** One document: the form of its message, and of every message that this needs. */
async function schemaOfForm({ message, spelling }: Form, types: FileRegistry, read: ReadSchema): Promise<JsonSchema> {
  const schemaOf = async (name: string) => {
    const type = types.getMessage(name);
    if (type === undefined) throw new Error(`No message of the contract is called ${name}`);
    return messageSchema(type, await read(name), spelling, types);
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
