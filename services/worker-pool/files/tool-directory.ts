import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { createChanges } from "#runtime/collections/changes.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import { openDirectoryWatch } from "./directory-watch.ts";
import type { Inspect } from "./inspector.ts";
import { isPythonFileName, isToolFileName, LEADS_OUT, placeInside, type ToolFile } from "./tool-file.ts";

interface ToolDirectoryOptions {
  directory: string;
  inspect: Inspect;
  logger: Pick<Logger, "info" | "warn">;
}

/** When reading failed for reasons of the machine, it is tried again. */
const RETRY_MS = 5_000;

export async function openToolDirectory(options: ToolDirectoryOptions): Promise<ToolDirectory> {
  const directory = new ToolDirectory(options);
  await directory.open();
  return directory;
}

/** The directory of workers, read again whenever a file changes. */
export class ToolDirectory implements AsyncDisposable {
  readonly #options: ToolDirectoryOptions;
  readonly #files = new Map<string, ToolFile>();
  /** Each after the changed files are read. */
  readonly changes = createChanges<[changed: readonly string[]]>();
  readonly #touched = new Set<string>();
  #watch: AsyncDisposable | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** How often a file changed that may be imported by each. */
  #importChanges = 0;
  #reading: Promise<void> = Promise.resolve();

  constructor(options: ToolDirectoryOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const { directory, logger } = this.#options;
    const isWatched = (path: string) => /\.py(\.lock)?$/.test(path);
    const onChange = (paths: readonly string[]) => {
      for (const path of paths) this.#touch(path.replace(/\.py\.lock$/, ".py")); // a lock is of what it is for
      this.#read();
    };
    this.#watch = await openDirectoryWatch({ directory, isWatched, logger, onChange });
    for (const name of await readdir(directory)) if (isPythonFileName(name)) this.#touched.add(name);
    await this.#readTouched();
  }

  /** All files, refused ones too, by name. */
  files(): readonly ToolFile[] {
    return [...this.#files.values()].sort((a, b) => (a.file < b.file ? -1 : 1));
  }

  find(file: string): ToolFile | undefined {
    return this.#files.get(file);
  }

  /** A change of what no tool is itself may be a change of each. */
  #touch(path: string): void {
    const isTool = isPythonFileName(path);
    if (isTool) this.#touched.add(path);
    if (isTool && this.#files.get(path)?.kind !== "refused") return;
    this.#importChanges += 1;
    for (const file of this.#files.keys()) this.#touched.add(file);
  }

  #read(): void {
    this.#reading = this.#reading.then(() => this.#readTouched());
  }

  async #readTouched(): Promise<void> {
    const names = [...this.#touched];
    this.#touched.clear();
    const changed = await this.#readFiles(names).catch((error: unknown) => {
      this.#options.logger.warn({ err: error }, `reading ${this.#options.directory} failed`);
      return undefined;
    });
    const known = (changed ?? []).filter((name) => name !== undefined);
    if (known.length > 0) this.changes.tell(known);
    const unread = changed
      ? [...this.#files.values()].filter((file) => file.kind === "refused" && file.isUnread).map(({ file }) => file)
      : names;
    if (unread.length > 0) this.#retry(unread);
  }

  #retry(names: readonly string[]): void {
    if (this.#isClosed) return;
    for (const name of names) this.#touched.add(name);
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => this.#read(), RETRY_MS).unref();
  }

  /** The names of those that are not what they were. */
  async #readFiles(names: readonly string[]): Promise<(string | undefined)[]> {
    const there = new Set(await readdir(this.#options.directory));
    const present = names.filter((name) => there.has(name));
    const gone = names.filter((name) => !there.has(name)).map((name) => (this.#files.delete(name) ? name : undefined));
    const inside = await Promise.all(present.map((name) => this.#refusalOfPlace(name)));
    const readable = present.filter((_, index) => inside[index] === undefined);
    const read = await this.#options.inspect(readable.map((name) => join(this.#options.directory, name)));
    const refused = inside.filter((file) => file !== undefined);
    const version = ({ digest }: ToolFile) => `${digest}-${this.#importChanges}`;
    const versions = read.map((file) => (file.kind === "offered" ? { ...file, digest: version(file) } : file));
    return [...gone, ...[...versions, ...refused].map((file) => this.#keep(file))];
  }

  #keep(file: ToolFile): string | undefined {
    const before = this.#files.get(file.file);
    if (isDeepStrictEqual(before, file)) return undefined;
    this.#files.set(file.file, file);
    const { logger } = this.#options;
    if (file.kind === "refused") logger.warn({ file: file.file }, `${file.file} is refused: ${file.reason}`);
    else logger.info({ file: file.file }, `${file.file} offers ${file.functions.map(({ name }) => name).join(", ")}`);
    return file.file;
  }

  /** What lies elsewhere is refused, and a name that no agent can write. */
  async #refusalOfPlace(name: string): Promise<ToolFile | undefined> {
    const path = join(this.#options.directory, name);
    const refused = (reason: string): ToolFile => ({ kind: "refused", file: name, path, digest: "", reason });
    if (!isToolFileName(name)) return refused("rename it: up to 64 letters from A to Z, digits, `_`, `-` and `.`");
    return (await placeInside(this.#options.directory, name)) ? undefined : refused(LEADS_OUT);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retryTimer);
    await this.#watch?.[Symbol.asyncDispose]();
    await this.#reading;
  }
}
