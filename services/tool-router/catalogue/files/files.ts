import { readFile as readFileThen } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join, parse } from "node:path";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type RefusedFile, RefusedFileSchema } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import { PAUSE_MS } from "#runtime/bus/quota/watermarks.ts";
import { type Changes, createChanges } from "#runtime/collections/changes.ts";
import { unlessAbsent } from "#runtime/failure/errno.ts";
import { isFailure, messageFromUnknown, unlessMissing } from "#runtime/failure/failure.ts";
import { inParallel } from "#runtime/time/in-parallel.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { auditRefusals } from "../audit/refusal-audit.ts";
import type { Catalogue } from "../catalogue.ts";
import { type CatalogueEditor, ConfigurationRefused } from "../editor.ts";
import { parseAgentFile } from "./agent-file.ts";
import type { Parsed } from "./file-form.ts";
import { parseToolFile } from "./tool-file.ts";
import { watchDirectories } from "./watch-directories.ts";

/** Of which directory files are: the tools' or the agents'. */
type Kind = "tools" | "agents";

/** The catalogue's files: loaded at the start and after each change. */
export interface CatalogueFiles extends AsyncDisposable {
  /** The files that are refused, by name, with what is wrong with them. The last good content of a faulty file stays in force. */
  refused(...kinds: Kind[]): RefusedFile[];
  /** Told whenever the files have been loaded. */
  readonly loads: Pick<Changes, "next">;
}

export interface FilesOptions {
  agentsDirectory: string;
  toolsDirectory: string;
  /** Called with the refused files whenever they change. */
  onFaults: (faults: readonly string[]) => void;
  /** ORCH-11: that a file is refused, or refused no longer, is a decision. */
  audit: Audit;
  /** Called whenever the file of an agent that has warnings is loaded. */
  onWarnings: (agent: string) => unknown;
}

/** Files of one directory and the part of the catalogue that they fill. */
interface FileKind<T extends { name: string }> {
  directory: string;
  parse: (text: string) => Parsed<T>;
  apply: (value: T, file: string) => Promise<unknown>;
  remove: (name: string, file: string) => Promise<void>;
  standing: () => { name: string; origin: string }[];
}

export async function openCatalogueFiles(
  { catalogue, editor }: { catalogue: Catalogue; editor: CatalogueEditor },
  options: FilesOptions,
): Promise<CatalogueFiles> {
  const warned = new Map<string, string>();
  let lacksRoom = false;
  /** What a full store refuses, it takes perhaps later. */
  const noticingRoom = <T>(applied: Promise<T>) =>
    applied.catch((error: unknown) => {
      lacksRoom ||= isFailure(error, "resource_exhausted");
      throw error;
    });
  const tools: FileKind<Tool> = {
    directory: options.toolsDirectory,
    parse: parseToolFile,
    apply: (tool, file) => noticingRoom(editor.applyTool(tool, { origin: file })),
    remove: (name, file) => editor.removeTool(name, { origin: file }),
    standing: () => catalogue.catalogTools.map(({ tool, origin }) => ({ name: tool?.name ?? "", origin })),
  };
  const agents: FileKind<Agent> = {
    directory: options.agentsDirectory,
    parse: parseAgentFile,
    async apply(agent, file) {
      const { revision, warnings } = await noticingRoom(editor.applyAgent(agent, { origin: file }));
      const told = `${revision} ${warnings.join("; ")}`;
      if (warnings.length > 0 && warned.get(agent.name) !== told) options.onWarnings(agent.name);
      warned.set(agent.name, told);
    },
    remove: (name, file) => editor.removeAgent(name, { origin: file }),
    standing: () => catalogue.agents.map(({ agent, origin }) => ({ name: agent?.name ?? "", origin })),
  };
  let refused: readonly RefusedFile[] = [];
  let refusedByKind: Record<Kind, readonly RefusedFile[]> = { tools: [], agents: [] };
  const loads = createChanges();

  /** Tools stand before the agents that name them, and go after them. */
  async function load(): Promise<void> {
    const [toolFiles, agentFiles] = [await readFiles(tools), await readFiles(agents)];
    await catalogue.caughtUp();
    lacksRoom = false;
    const refusedTools = await applyFiles(tools, toolFiles);
    const foundTools = refusedTools.map(({ refused }) => refused);
    if (areNews(foundTools, refusedByKind.tools))
      catalogue.setRefusedTools(new Map(refusedTools.map(({ name, refused: file }) => [name, file])));
    const refusedAgents = await applyFiles(agents, agentFiles);
    const foundByKind = { tools: foundTools, agents: refusedAgents.map(({ refused }) => refused) };
    const found = [...foundByKind.tools, ...foundByKind.agents];
    await removeOrphans(agents, agentFiles);
    await removeOrphans(tools, toolFiles);
    const isNews = areNews(found, refused);
    auditRefusals(options.audit, refused, found);
    refused = found;
    refusedByKind = foundByKind;
    if (isNews) options.onFaults(linesFrom(refused));
    loads.tell();
  }

  const closing = new AbortController();
  const sinceMs = Date.now();

  /** A store that does not answer makes no file worse: it is waited for, at the start before anybody asks for an agent. */
  const loadWhenStored = () =>
    retryWhile(isUnavailable, load, { initialMs: 50, maxMs: 1_000, signal: closing.signal }).catch((error: unknown) => {
      if (!closing.signal.aborted) throw error;
    });

  let last = loadWhenStored();
  const reload = () => {
    last = last
      .then(loadWhenStored)
      .catch((error: unknown) => options.onFaults([`files: ${messageFromUnknown(error)}`]));
  };
  await last;
  const changes = watchDirectories([options.toolsDirectory, options.agentsDirectory], sinceMs, reload);
  void retryFaulty();
  const retryingFull = setInterval(() => lacksRoom && reload(), PAUSE_MS);

  /** A file that was refused for the lack of a tool or a provider is good as soon as that is there. */
  async function retryFaulty(): Promise<void> {
    while (!closing.signal.aborted) {
      const { version } = catalogue;
      await catalogue.agentChanges.next().happened;
      if (catalogue.version !== version && refused.length > 0 && !closing.signal.aborted) reload();
    }
  }

  return {
    refused: (...kinds) =>
      kinds.flatMap((kind) => refusedByKind[kind]).sort((one, other) => (one.file < other.file ? -1 : 1)),
    loads,
    async [Symbol.asyncDispose]() {
      closing.abort();
      clearInterval(retryingFull);
      await changes[Symbol.asyncDispose]();
      await last;
    },
  };
}

/** That of `node:fs/promises` takes three times the processor for a small file. */
const readFile = promisify(readFileThen);

/** What one writes such files in elsewhere; all but the first are refused, where silence would leave their author in doubt. */
const LIKE_OURS = /\.(json|json5|jsonc|toml|ya?ml)$/i;

async function filesOf(directory: string): Promise<string[] | undefined> {
  const files = await readdir(directory).catch(unlessAbsent);
  return files?.filter((file) => LIKE_OURS.test(file)).sort();
}

async function parsedFile<T extends { name: string }>(kind: FileKind<T>, file: string): Promise<Parsed<T>> {
  if (!file.endsWith(".json"))
    return { kind: "faulty", faults: ["is not read: agents and tools are written as JSON, in files NAME.json"] };
  try {
    return kind.parse(await readFile(join(kind.directory, file), "utf8"));
  } catch (error) {
    return { kind: "faulty", faults: [messageFromUnknown(error)] };
  }
}

function areNews(found: readonly RefusedFile[], known: readonly RefusedFile[]): boolean {
  return linesFrom(found).join("\n") !== linesFrom(known).join("\n");
}

/** A fault a line, with its file. */
function linesFrom(refused: readonly RefusedFile[]): string[] {
  return refused.flatMap(({ file, faults }) => faults.map((fault) => `${file}: ${fault}`));
}

/** The files of a directory, by name; undefined where it is missing. */
type Files<T extends { name: string }> = ReadonlyMap<string, Parsed<T>> | undefined;

async function readFiles<T extends { name: string }>(kind: FileKind<T>): Promise<Files<T>> {
  const names = await filesOf(kind.directory);
  if (names === undefined) return undefined;
  return new Map(await Promise.all(names.map(async (file) => [file, await parsedFile(kind, file)] as const)));
}

/** So many files are written at a time: each waits for the store a few times. */
const AT_A_TIME = 256;

/** What is refused of a file, and the name of what it would define, as far as that can be read, else that of the file. */
interface Refusal {
  readonly name: string;
  readonly refused: RefusedFile;
}

async function applyFiles<T extends { name: string }>(
  kind: FileKind<T>,
  files: Files<T> = new Map(),
): Promise<Refusal[]> {
  const filesByName = Map.groupBy(
    [...files].flatMap(([file, parsed]) => (parsed.kind === "parsed" ? [{ file, name: parsed.value.name }] : [])),
    ({ name }) => name,
  );
  const faultsByFile = new Map<string, readonly string[]>();
  await inParallel([...files], AT_A_TIME, async ([file, parsed]) => {
    const name = parsed.kind === "parsed" ? parsed.value.name : "";
    const others = (filesByName.get(name) ?? []).map((one) => one.file).filter((other) => other !== file);
    const faults = others.length > 0 ? [faultOfDuplicate(name, others)] : await faultsOfApplying(kind, parsed, file);
    faultsByFile.set(file, faults);
  });
  return [...files].flatMap(([file, parsed]) => {
    const faults = [...(faultsByFile.get(file) ?? [])];
    const refused = create(RefusedFileSchema, { file: `${basename(kind.directory)}/${file}`, faults });
    return faults.length === 0 ? [] : [{ name: nameOf(parsed, file), refused }];
  });
}

function nameOf<T extends { name: string }>(parsed: Parsed<T>, file: string): string {
  const name = parsed.kind === "parsed" ? parsed.value.name : parsed.name;
  return typeof name === "string" && name !== "" ? name : parse(file).name;
}

/** None of them is applied: which one is meant, only their author knows. */
function faultOfDuplicate(name: string, others: string[]): string {
  return `name: ${JSON.stringify(name)} is defined in ${others.join(" and ")}, too`;
}

async function faultsOfApplying<T extends { name: string }>(
  kind: FileKind<T>,
  parsed: Parsed<T>,
  file: string,
): Promise<string[]> {
  if (parsed.kind === "faulty") return parsed.faults;
  try {
    await kind.apply(parsed.value, file);
    return [];
  } catch (error) {
    if (isUnavailable(error)) throw error;
    const { placed = (fault) => fault } = parsed;
    return error instanceof ConfigurationRefused ? error.faults.map(placed) : [messageFromUnknown(error)];
  }
}

/** The stores are away; of what they refuse otherwise the author is told. */
const isUnavailable = (error: unknown) => isFailure(error, "unavailable");

/** Removes what came from a file that was deleted, or that defines something else now. A missing directory removes nothing. */
async function removeOrphans<T extends { name: string }>(kind: FileKind<T>, files: Files<T>): Promise<void> {
  if (files === undefined) return;
  for (const { name, origin } of kind.standing()) {
    if (!origin.endsWith(".json")) continue;
    const parsed = files.get(origin);
    const isKept = parsed !== undefined && (parsed.kind === "faulty" || parsed.value.name === name);
    if (!isKept) await kind.remove(name, origin).catch(unlessMissing); // another router was quicker
  }
}
