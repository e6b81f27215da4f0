// The hosted modules of a directory: each in a process of its own, loaded again when it changes, started again when it ended.
//
// The process is confined as those of workers are, and has nothing of the service: no variable, key or file of it, and no
// connection but the one to us. An endless loop, an exception that nobody caught, `process.exit`, a full heap or native code that
// crashes end it and nothing else. Its calls get `unavailable`, reason `WORKER_CRASHED`; the next call starts it again; one that
// keeps ending is backed off.
//
// HOSTED1  Each tool name is offered once. A module that brings a name of another one is refused, with both names; the one that
//     was there first stays. A module that is refused is offered by nobody, hides no other, and is tried again after a wait that
//     grows: what it needs may have been away. One that was offered and only fails to start again stays offered, and is backed off
//     like one that keeps ending.
// HOSTED2  A module that changes, or that imports a file of the directory that changes, is loaded again: the old process finishes its
//     calls, then `shutdown` runs. `StopWorker` does the same; with force, it fails the calls. The next call starts the module again.
// HOSTED3  If a call's time is over, or its caller has left, its `signal` aborts. What then happens to the process: `worker.ts`, WORKER2.
// HOSTED4  `call.registry` lists and calls the agent's tools of every kind through the router, under the agent's policy, within what the
//     run allows (`allowed_tools`) and has left (`max_tool_calls`, tokens, cost, deadline). `call.model.generate` is a run of one turn
//     without tools, in a session of its own that is closed afterwards, by the agent's own model or another agent's. Both act for
//     the session's principal. What they use is reported with the call's result, and counts in the run's limits.
// HOSTED5  A module that does not initialize is not kept before its first call: what it offers is known, and nothing is lost with it.
// HOSTED6  `call.config` and `call.secrets` are what the entry gives. The environment is that of a Python worker.

import { readdir } from "node:fs/promises";
import { createChanges } from "#runtime/collections/changes.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { type Backoff, createBackoff } from "#runtime/time/retry/backoff.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { PoolTimes } from "../config.ts";
import { openDirectoryWatch } from "../files/directory-watch.ts";
import {
  isModuleFileName,
  LEADS_OUT,
  type OfferedFile,
  placeInside,
  sourceFromFile,
  type ToolFile,
  type ToolFunction,
} from "../files/tool-file.ts";
import { Pool, type PoolOptions } from "../pool/pool.ts";
import { type ModuleOptions, openModule } from "./process/open-module.ts";

interface HostedModulesOptions
  extends Pick<ModuleOptions, "maxLineBytes" | "redact" | "heapBytes" | "environment" | "confinement">,
    Pick<PoolOptions, "pool" | "onLine"> {
  directory: string;
  times: PoolOptions["times"] & Pick<PoolTimes, "startMs" | "cancelGraceMs">;
  logger: Pick<Logger, "info" | "warn">;
}

/** A file of the directory as it stands. */
export type ModuleFile = ToolFile | { kind: "loading"; file: string };

/** A module and its life, from version to version. */
interface Module {
  state: ModuleFile;
  /** HOSTED1: what nobody else may offer. */
  tools: readonly ToolFunction[];
  loading: Promise<void>;
  /** The version that is being loaded: whether it fails is told once. */
  loads?: string | undefined;
  /** Waits between the tries of a module that is refused. */
  backoff: Backoff;
  /** Ends the wait for the next try. */
  endRetry: () => void;
}

/** How long the service's start waits for modules; those that take longer are offered when they are there. */
const START_MS = 5_000;
export async function openHostedModules(options: HostedModulesOptions): Promise<HostedModules> {
  const modules = new HostedModules(options);
  await modules.open();
  return modules;
}

export class HostedModules implements AsyncDisposable {
  /** One process for each module, which takes any number of calls. */
  readonly pool: Pool;
  readonly changes = createChanges();
  readonly #options: HostedModulesOptions;
  readonly #modules = new Map<string, Module>();
  #versions = 0;
  #watch: AsyncDisposable | undefined;
  #isClosed = false;

  constructor(options: HostedModulesOptions) {
    const unlimited = Number.POSITIVE_INFINITY;
    this.#options = options;
    this.pool = new Pool({
      ...options,
      worker: { calls: unlimited, maxCalls: unlimited, keepsSpare: false },
      pool: { ...options.pool, workers: unlimited },
      times: { ...options.times, idleMs: unlimited, maxLifeMs: unlimited },
      find: (file) => this.#loaded(file),
      onCrash: (at, detail, digest) => {
        if (digest !== this.#modules.get(at.file)?.loads) options.logger.warn(at, `a worker failed: ${detail}`);
      },
      start: (file, parts) => {
        const { startMs: startTimeoutMs, cancelGraceMs } = options.times;
        const claim = (tools: readonly ToolFunction[]) => this.#claim(file.file, tools);
        return openModule({ ...options, startTimeoutMs, cancelGraceMs, ...parts, file, claim });
      },
    });
  }

  async open(): Promise<void> {
    const { directory, logger } = this.#options;
    const isWatched = (path: string) => /\.(m?[jt]s|json)$/.test(path); // whatever a module may be made of
    const onChange = (paths: readonly string[]) => void this.#reload(paths);
    this.#watch = await openDirectoryWatch({ directory, isWatched, logger, onChange });
    const loads = (await readdir(directory))
      .filter(isModuleFileName)
      .sort()
      .map((file) => this.#load(file));
    await comesWithin(START_MS, Promise.all(loads));
  }

  files(): ModuleFile[] {
    const files = this.#modules.values().map(({ state }) => state);
    return [...files].sort((a, b) => (a.file < b.file ? -1 : 1));
  }

  find(file: string): ModuleFile | undefined {
    return this.#modules.get(file)?.state;
  }

  /** The file of a tool. */
  fileOf(tool: string): string | undefined {
    return this.#modules.values().find(({ tools }) => tools.some(({ name }) => name === tool))?.state.file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#watch?.[Symbol.asyncDispose]();
    for (const { endRetry } of this.#modules.values()) endRetry();
    await this.pool[Symbol.asyncDispose]();
    await Promise.all(this.#modules.values().map(({ loading }) => loading));
  }

  async #loaded(file: string): Promise<ToolFile | undefined> {
    const module = this.#modules.get(file);
    await module?.loading;
    if (this.#modules.get(file)?.loading !== module?.loading) return this.#loaded(file);
    return module === undefined || module.state.kind === "loading" ? undefined : module.state;
  }

  /** A change of what no module is itself may be a change of each: all are loaded again. Any other may be what a refused one lacks. */
  async #reload(paths: readonly string[]): Promise<void> {
    const isOfAll = paths.some((path) => !isModuleFileName(path));
    const touched = this.files().filter(({ kind }) => isOfAll || kind === "refused");
    const named = [...paths.filter(isModuleFileName), ...touched.map(({ file }) => file)];
    const there = new Set(await readdir(this.#options.directory).catch(() => [])); // gone: so are its modules
    for (const file of [...new Set(named)].sort()) {
      this.#modules.get(file)?.backoff.reset();
      if (there.has(file)) void this.#load(file);
      else this.#remove(file);
    }
  }

  #load(file: string): Promise<void> {
    const module = this.#modules.get(file) ?? createModule(file, this.#options.times);
    this.#modules.set(file, module);
    module.loading = module.loading.then(() => this.#replace(module));
    return module.loading;
  }

  #remove(file: string): void {
    const module = this.#modules.get(file);
    this.#modules.delete(file);
    module?.endRetry();
    void module?.loading.then(() => this.pool.renew([file]));
    this.changes.tell();
  }

  #stands(module: Module): boolean {
    return !this.#isClosed && this.#modules.get(module.state.file) === module;
  }

  /** Loads what the file holds, and lets what was there before finish what it has. Never rejects. */
  async #replace(module: Module): Promise<void> {
    if (!this.#stands(module)) return;
    module.endRetry();
    const { logger } = this.#options;
    const { file } = module.state;
    try {
      this.pool.renew([file]);
      const place = await placeInside(this.#options.directory, file);
      const path = place ?? refuse("failed_precondition", LEADS_OUT, { reason: "WORKER_INVALID" });
      const digest = String(++this.#versions);
      const version: OfferedFile = { kind: "offered", file, path, digest, environment: "", functions: [] };
      module.loads = digest;
      const slot = this.pool.slotOf(sourceFromFile(file), file); // used at once: the pool forgets those that are not
      const { ready } = await slot.worker(version);
      module.state = { ...version, functions: module.tools };
      module.backoff.reset();
      if (!(await ready).initializes) void slot.endIdle(); // HOSTED5
      logger.info({ file }, `${file} offers ${module.tools.map(({ name }) => name).join(", ")}`);
    } catch (error) {
      const reason = reasonWithWayOut(messageFromUnknown(error));
      const detail = error instanceof Failure && error.cause !== undefined ? `\n${error.cause}` : "";
      const isNews = module.state.kind !== "refused" || module.state.reason !== reason;
      if (isNews && this.#stands(module)) logger.warn({ file }, `${file} is refused: ${reason}${detail}`);
      module.state = { kind: "refused", file, path: "", digest: "", reason };
      module.tools = [];
      if (this.#stands(module)) module.endRetry = startTimer(module.backoff.next(), () => void this.#load(file));
    }
    module.loads = undefined;
    this.changes.tell();
  }

  /** HOSTED1. Throws `already_exists`, and changes nothing then. */
  #claim(file: string, tools: readonly ToolFunction[]): void {
    for (const { name } of tools) {
      const other = this.fileOf(name) ?? file;
      if (other !== file)
        refuse("already_exists", `the tool ${JSON.stringify(name)} is registered by ${other} already`, {
          reason: "TOOL_NAME_TAKEN",
        });
    }
    const module = this.#modules.get(file);
    if (module) module.tools = tools;
  }
}

function createModule(file: string, { backoffMs, maxBackoffMs }: PoolOptions["times"]): Module {
  return {
    state: { kind: "loading", file },
    tools: [],
    loading: Promise.resolve(),
    backoff: createBackoff({ initialMs: backoffMs, maxMs: maxBackoffMs }),
    endRetry() {},
  };
}

/** A module that Node took for CommonJS fails at its first `import` or `export`, and not by its author's fault. */
function reasonWithWayOut(reason: string): string {
  if (!/Unexpected token 'export'|Cannot use import statement/.test(reason)) return reason;
  return `${reason} (the package.json above it makes it CommonJS: put one with {"type":"module"} beside it, and save it again)`;
}
