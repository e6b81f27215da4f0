import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { watch } from "chokidar";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { parseAgentFile } from "./agent-file.ts";
import type { Catalogue } from "./catalogue.ts";
import type { CatalogueEditor } from "./editor.ts";
import type { Parsed } from "./file-form.ts";
import { parseToolFile } from "./tool-file.ts";

/** The catalogue's files: loaded at the start and after each change. */
export interface CatalogueFiles extends AsyncDisposable {
  /** What is wrong with files, each fault with file and path. The last good content of a faulty file stays in force. */
  readonly faults: readonly string[];
  /** Resolves when the files have been loaded the next time. */
  readonly loaded: Promise<void>;
}

export interface FilesOptions {
  agentsDirectory: string;
  toolsDirectory: string;
  onFaults: (faults: readonly string[]) => void;
}

/** Files of one directory and the part of the catalogue that they fill. */
interface FileShelf<T extends { name: string }> {
  directory: string;
  parse: (text: string) => Parsed<T>;
  apply: (value: T, file: string) => Promise<unknown>;
  remove: (name: string, file: string) => Promise<void>;
  standing: () => { name: string; origin: string }[];
}

const QUIET_MS = 50;

export async function openCatalogueFiles(
  { catalogue, editor }: { catalogue: Catalogue; editor: CatalogueEditor },
  options: FilesOptions,
): Promise<CatalogueFiles> {
  const tools: FileShelf<Tool> = {
    directory: options.toolsDirectory,
    parse: parseToolFile,
    apply: (tool, file) => editor.applyTool(tool, file),
    remove: (name, file) => editor.removeTool(name, file),
    standing: () => catalogue.storedTools.map(({ tool, origin }) => ({ name: tool?.name ?? "", origin })),
  };
  const agents: FileShelf<Agent> = {
    directory: options.agentsDirectory,
    parse: parseAgentFile,
    apply: (agent, file) => editor.applyAgent(agent, file),
    remove: (name, file) => editor.removeAgent(name, file),
    standing: () => catalogue.agents.map(({ agent, origin }) => ({ name: agent?.name ?? "", origin })),
  };
  let faults: readonly string[] = [];
  let loaded = Promise.withResolvers<void>();

  /** Tools stand before the agents that name them, and go after them. */
  async function load(): Promise<void> {
    const found = [...(await applyFiles(tools)), ...(await applyFiles(agents))];
    await removeOrphans(agents);
    await removeOrphans(tools);
    const isNews = found.join("\n") !== faults.join("\n");
    faults = found;
    if (isNews) options.onFaults(faults);
    loaded.resolve();
    loaded = Promise.withResolvers();
  }

  let last = load();
  await last;
  const reload = () => {
    last = last.then(load).catch((error: unknown) => options.onFaults([`files: ${messageFromUnknown(error)}`]));
  };
  const changes = await watchDirectories([options.toolsDirectory, options.agentsDirectory], reload);
  const closing = new AbortController();
  void retryFaulty();

  /** A file that was refused for the lack of a tool or a provider is good as soon as that is there. */
  async function retryFaulty(): Promise<void> {
    while (!closing.signal.aborted) {
      const { version } = catalogue;
      await catalogue.agentsChanged;
      if (catalogue.version !== version && faults.length > 0 && !closing.signal.aborted) reload();
    }
  }

  return {
    get faults() {
      return faults;
    },
    get loaded() {
      return loaded.promise;
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await changes[Symbol.asyncDispose]();
      await last;
    },
  };
}

/** Calls back once changes have come to rest. */
async function watchDirectories(directories: string[], onChange: () => void): Promise<AsyncDisposable> {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(directories, { ignoreInitial: true, depth: 0 });
  watcher.on("all", () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, QUIET_MS);
  });
  await new Promise<void>((resolve) => watcher.once("ready", resolve));
  return {
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await watcher.close();
    },
  };
}

async function filesOf(directory: string): Promise<string[] | undefined> {
  try {
    return (await readdir(directory)).filter((file) => file.endsWith(".json")).sort();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function parsedFile<T extends { name: string }>(shelf: FileShelf<T>, file: string): Promise<Parsed<T>> {
  try {
    return shelf.parse(await readFile(join(shelf.directory, file), "utf8"));
  } catch (error) {
    return { kind: "faulty", faults: [messageFromUnknown(error)] };
  }
}

async function applyFiles<T extends { name: string }>(shelf: FileShelf<T>): Promise<string[]> {
  const faults: string[] = [];
  const fileByName = new Map<string, string>();
  for (const file of (await filesOf(shelf.directory)) ?? []) {
    const parsed = await parsedFile(shelf, file);
    const told =
      parsed.kind === "faulty" ? parsed.faults : await faultsOfApplying(shelf, parsed.value, file, fileByName);
    faults.push(...told.map((fault) => `${basename(shelf.directory)}/${file}: ${fault}`));
  }
  return faults;
}

async function faultsOfApplying<T extends { name: string }>(
  shelf: FileShelf<T>,
  value: T,
  file: string,
  fileByName: Map<string, string>,
): Promise<string[]> {
  const other = fileByName.get(value.name);
  if (other !== undefined) return [`name: ${JSON.stringify(value.name)} is defined in ${other}, too`];
  fileByName.set(value.name, file);
  try {
    await shelf.apply(value, file);
    return [];
  } catch (error) {
    return [messageFromUnknown(error)];
  }
}

/** What came from a file that is gone, or that defines something else by now. A directory that is missing says nothing. */
async function removeOrphans<T extends { name: string }>(shelf: FileShelf<T>): Promise<void> {
  const files = await filesOf(shelf.directory);
  if (files === undefined) return;
  for (const { name, origin } of shelf.standing()) {
    if (!origin.endsWith(".json")) continue;
    const parsed = files.includes(origin) ? await parsedFile(shelf, origin) : undefined;
    const isKept = parsed !== undefined && (parsed.kind === "faulty" || parsed.value.name === name);
    if (!isKept) await shelf.remove(name, origin).catch(unlessGone);
  }
}

/** Another router with the same files was quicker. */
function unlessGone(error: unknown): void {
  if (!(error instanceof Failure && error.code === "not_found")) throw error;
}
