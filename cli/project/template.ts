// What a new project begins with: the examples, with the schemas of their files for editors.

import { existsSync } from "node:fs";
import { appendFile, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { programDirectory } from "#runtime/config/places.ts";

const EXAMPLES = ["agents", "hosted", "scripts", "tools", "ui", "workers"];
const SCHEMAS = ["agent.schema.json", "tool.schema.json"];

const MARK = `# This folder is a toolbus project: \`toolbus up\` serves what is in agents, tools, workers, hosted, scripts and ui.
# A folder of another name is named here, like \`agents: my-agents\`.
`;

const VARIABLES = `# Read by toolbus wherever in this project it is started. What the environment sets stands above it.
# All settings: node_modules/toolbus/docs/settings.md

# The model of agents/assistant.json: any server that speaks OpenAI's chat completions.
# OPENAI_BASE_URL=https://api.openai.com/v1
# OPENAI_API_KEY=

# Secrets that tools and MCP servers name as \${secret:NAME}.
# TOOLBUS_SECRET_NAME=
`;

/** What says how a project is started. */
export const startFiles = { "toolbus.yaml": MARK, ".env": VARIABLES };

/** Whatever the package.json of the project says, as `npm init` writes it: hosted modules are ECMAScript modules. */
const MODULES = '{ "type": "module" }\n';

/** The first two hold keys. */
const IGNORED = [".toolbus/", ".env", "node_modules/", "__pycache__/"];

export interface Made {
  readonly made: readonly string[];
  /** They were there, and stay as they are. */
  readonly kept: readonly string[];
}

/** Writes what is not there; schemas are brought to those of this version. */
export async function makeProject(directory: string): Promise<Made> {
  const made: string[] = [];
  const kept: string[] = [];
  await makeFolder(join(directory, "schemas"));
  for (const name of SCHEMAS)
    await cp(join(programDirectory, "gen", "jsonschema", name), join(directory, "schemas", name));
  const texts = {
    ...startFiles,
    "hosted/package.json": MODULES,
    ...(await examples()),
  };
  for (const [path, text] of Object.entries(texts)) {
    await mkdir(join(directory, path, ".."), { recursive: true });
    (await writeNew(join(directory, path), text)) ? made.push(path) : kept.push(path);
  }
  ((await ignoreKeys(join(directory, ".gitignore"))) ? made : kept).push(".gitignore");
  return { made, kept };
}

/** `mkdir` that is recursive never ends in a folder where nothing can be made, as /proc. */
async function makeFolder(path: string): Promise<void> {
  if (existsSync(path)) return;
  await makeFolder(dirname(path));
  await mkdir(path);
}

/** Adds what is missing to a list that is there, and gives whether anything was. */
async function ignoreKeys(path: string): Promise<boolean> {
  const text = await readFile(path, "utf8").catch(() => ""); // there is none, or writing it says why
  const lines = new Set(text.split(/\r?\n/).map((line) => line.trim().replace(/^\//, "").replace(/\/$/, "")));
  const missing = IGNORED.filter((line) => !lines.has(line.replace(/\/$/, "")));
  if (missing.length === 0) return false;
  await appendFile(path, `${text === "" || text.endsWith("\n") ? "" : "\n"}${missing.join("\n")}\n`);
  return true;
}

/** Their texts by their paths; what leads to the schemas leads to those of the project. */
async function examples(): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const folder of EXAMPLES) {
    const path = join(programDirectory, "examples", folder);
    for (const name of (await readdir(path)).sort()) {
      const text = await readFile(join(path, name), "utf8");
      texts[`${basename(path)}/${name}`] = text.replace("../../gen/jsonschema/", "../schemas/");
    }
  }
  return texts;
}

async function writeNew(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: "wx", mode: path.endsWith(".env") ? 0o600 : 0o644 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    await rm(path, { force: true }).catch(() => {}); // of a full disk: what is half there would be kept the next time
    throw error;
  }
}
