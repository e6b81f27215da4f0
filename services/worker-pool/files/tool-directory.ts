import { mkdir, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import type { Inspector } from "./inspector.ts";
import { isToolFileName, type ToolFile } from "./tool-file.ts";

/** The directory of workers, read again whenever a file changes. */
export interface ToolDirectory extends AsyncDisposable {
  /** All files, refused ones too, by name. */
  files(): readonly ToolFile[];
  find(file: string): ToolFile | undefined;
  /** Calls back after each change, once the changed files are read; gives the function that ends it. */
  onChange(listener: (changed: readonly string[]) => void): () => void;
}

export interface ToolDirectoryOptions {
  directory: string;
  inspector: Inspector;
  logger: Pick<Logger, "info" | "warn">;
}

/** Editors write a file in several steps; what happens within this time is read once. */
const SETTLE_MS = 50;
/** When reading failed for reasons of the machine, it is tried again. */
const RETRY_MS = 5_000;

export async function openToolDirectory(options: ToolDirectoryOptions): Promise<ToolDirectory> {
  const directory = new WatchedDirectory(options);
  await directory.open();
  return directory;
}

class WatchedDirectory implements ToolDirectory {
  readonly #options: ToolDirectoryOptions;
  readonly #files = new Map<string, ToolFile>();
  readonly #listeners = new Set<(changed: readonly string[]) => void>();
  readonly #touched = new Set<string>();
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #reading: Promise<void> = Promise.resolve();

  constructor(options: ToolDirectoryOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const { directory, logger } = this.#options;
    await mkdir(directory, { recursive: true });
    this.#watcher = watch(directory, { depth: 0, ignoreInitial: true });
    this.#watcher.on("all", (_event, path) => this.#touch(path));
    this.#watcher.on("error", (error) => logger.warn({ err: error }, `watching ${directory} failed`));
    await new Promise<void>((resolve) => this.#watcher?.once("ready", resolve));
    for (const name of await readdir(directory)) if (isToolFileName(name)) this.#touched.add(name);
    await this.#readTouched();
  }

  files(): readonly ToolFile[] {
    return [...this.#files.values()].sort((a, b) => (a.file < b.file ? -1 : 1));
  }

  find(file: string): ToolFile | undefined {
    return this.#files.get(file);
  }

  onChange(listener: (changed: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #touch(path: string): void {
    const name = path.slice(path.lastIndexOf(sep) + 1).replace(/\.py\.lock$/, ".py");
    if (!isToolFileName(name)) return;
    this.#touched.add(name);
    this.#timer = this.#readIn(SETTLE_MS, this.#timer);
  }

  #readIn(waitMs: number, timer: NodeJS.Timeout | undefined): NodeJS.Timeout {
    clearTimeout(timer);
    return setTimeout(() => {
      this.#reading = this.#reading.then(() => this.#readTouched());
    }, waitMs).unref();
  }

  async #readTouched(): Promise<void> {
    const names = [...this.#touched];
    this.#touched.clear();
    const changed = await this.#readFiles(names).catch((error: unknown) => {
      this.#options.logger.warn({ err: error }, `reading ${this.#options.directory} failed`);
      return undefined;
    });
    const known = (changed ?? []).filter((name) => name !== undefined);
    if (known.length > 0) for (const listener of this.#listeners) listener(known);
    const unread = changed ? [...this.#files.values()].filter(isUnread).map(({ file }) => file) : names;
    if (unread.length > 0) this.#retry(unread);
  }

  #retry(names: readonly string[]): void {
    if (this.#isClosed) return;
    for (const name of names) this.#touched.add(name);
    this.#retryTimer = this.#readIn(RETRY_MS, this.#retryTimer);
  }

  /** The names of those that are not what they were. */
  async #readFiles(names: readonly string[]): Promise<(string | undefined)[]> {
    const there = new Set(await readdir(this.#options.directory));
    const present = names.filter((name) => there.has(name));
    const gone = names.filter((name) => !there.has(name)).map((name) => this.#forget(name));
    const inside = await Promise.all(present.map((name) => this.#refusalOfOutside(name)));
    const readable = present.filter((_, index) => inside[index] === undefined);
    const read = await this.#options.inspector.inspect(readable.map((name) => join(this.#options.directory, name)));
    const refused = inside.filter((file) => file !== undefined);
    return [...gone, ...[...read, ...refused].map((file) => this.#keep(file))];
  }

  #forget(name: string): string | undefined {
    return this.#files.delete(name) ? name : undefined;
  }

  #keep(file: ToolFile): string | undefined {
    const before = this.#files.get(file.file);
    if (before?.kind === file.kind && before.digest === file.digest && reasonOf(before) === reasonOf(file)) {
      return undefined;
    }
    this.#files.set(file.file, file);
    const { logger } = this.#options;
    if (file.kind === "refused") logger.warn({ file: file.file }, `${file.file} is refused: ${file.reason}`);
    else logger.info({ file: file.file }, `${file.file} offers ${file.functions.map(({ name }) => name).join(", ")}`);
    return file.file;
  }

  /** A link that leads out of the directory is refused: what may run is what lies in it. */
  async #refusalOfOutside(name: string): Promise<ToolFile | undefined> {
    const path = join(this.#options.directory, name);
    const [directory, target] = await Promise.all([
      realpath(this.#options.directory),
      realpath(path).catch(() => undefined), // a link that leads nowhere
    ]);
    if (target?.startsWith(directory + sep)) return undefined;
    return { kind: "refused", file: name, path, digest: "", reason: "it is a link that leads out of the directory" };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#retryTimer);
    this.#listeners.clear();
    await this.#watcher?.close();
    await this.#reading;
  }
}

function isUnread(file: ToolFile): boolean {
  return file.kind === "refused" && file.isUnread === true;
}

function reasonOf(file: ToolFile): string {
  return file.kind === "refused" ? file.reason : "";
}
