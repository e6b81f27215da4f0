import { refuse } from "#runtime/failure/failure.ts";
import type { DescribedTool } from "./process/module-form.ts";

/** A module as the registry holds it, which is its process: its tools, and the two ends of its life. */
export interface RegisteredModule {
  readonly file: string;
  readonly tools: readonly DescribedTool[];
  initialize(): Promise<void>;
  close(): Promise<void>;
}

export interface HostedTool {
  module: RegisteredModule;
  tool: DescribedTool;
}

/** LOOP-9: the hosted tools of a service, each name once. */
export class HostedRegistry {
  readonly #modules = new Map<string, RegisteredModule>();

  /**
   * Takes in a module, in place of one of the same file. Throws `already_exists`, which names the tool and the other file, when
   * another has a tool of the same name; nothing has changed then.
   */
  register(module: RegisteredModule): void {
    for (const { name } of module.tools) {
      const other = this.get(name)?.module.file;
      if (other !== undefined && other !== module.file)
        refuse("already_exists", `the tool ${JSON.stringify(name)} is registered by ${other} already`, {
          reason: "TOOL_NAME_TAKEN",
        });
    }
    this.#modules.set(module.file, module);
  }

  /** Forgets a module, unless another stands in its place. */
  unregister(module: RegisteredModule): void {
    if (this.#modules.get(module.file) === module) this.#modules.delete(module.file);
  }

  get(name: string): HostedTool | undefined {
    return this.list().find(({ tool }) => tool.name === name);
  }

  list(): HostedTool[] {
    const modules = [...this.#modules.values()].sort((a, b) => (a.file < b.file ? -1 : 1));
    return modules.flatMap((module) => module.tools.map((tool) => ({ module, tool })));
  }

  /** Registers and starts a module; one that cannot be started is not kept, and leaves its place to the one before. */
  async initialize(module: RegisteredModule): Promise<void> {
    const before = this.#modules.get(module.file);
    this.register(module);
    try {
      await module.initialize();
    } catch (error) {
      this.unregister(module);
      if (before) this.register(before);
      throw error;
    }
  }

  /** Ends all modules; none of them keeps another from ending. */
  async shutdown(): Promise<void> {
    const modules = [...this.#modules.values()];
    this.#modules.clear();
    await Promise.all(modules.map((module) => module.close()));
  }
}
