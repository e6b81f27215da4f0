import { create, equals } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type StoredAgent, StoredAgentSchema } from "#gen/toolbus/router/v1/agents_pb.ts";
import { type Provider, type StoredTool, StoredToolSchema } from "#gen/toolbus/router/v1/catalogue_pb.ts";
import { type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Audit } from "../audit.ts";
import type { Documents } from "../documents.ts";
import type { Validator } from "../validate.ts";
import { type AgentFindings, checkAgent } from "./check-agent.ts";
import { faultsOfTool } from "./check-tool.ts";
import type { Shelf } from "./shelf.ts";

/** A kind of thing in the catalogue: where it is written, and what all routers have read of it. */
export interface Collection<T> {
  readonly documents: Documents<T>;
  readonly shelf: Shelf<T>;
}

export interface CatalogueParts {
  agents: Collection<StoredAgent>;
  tools: Collection<StoredTool>;
  providers: Collection<Provider>;
  /** The providers of the suite, in their order; they cannot be changed. */
  ownProviders: readonly Provider[];
  /** Waits until the shelves show every write that was acknowledged before the call. */
  caughtUp: () => Promise<void>;
  validator: Validator;
  audit: Audit;
}

/** The origin of what was applied by RPC; of everything else it is the file's name. */
export const BY_RPC = "rpc";

/**
 * Agents, tools and providers. What comes from a file belongs to the file, what was applied belongs to its appliers: neither
 * overwrites the other.
 */
export class Catalogue {
  readonly #parts: CatalogueParts;
  #tools = new Map<string, Tool>();
  #toolsVersion = -1;

  constructor(parts: CatalogueParts) {
    this.#parts = parts;
  }

  get caughtUp(): () => Promise<void> {
    return this.#parts.caughtUp;
  }

  /** Grows with each change of tools and providers. */
  get version(): number {
    return this.#parts.tools.shelf.version + this.#parts.providers.shelf.version;
  }

  get tools(): ReadonlyMap<string, Tool> {
    const { shelf } = this.#parts.tools;
    if (this.#toolsVersion !== shelf.version) {
      this.#toolsVersion = shelf.version;
      this.#tools = new Map(
        shelf.entries.map(([, { value }]) => [value.tool?.name ?? "", value.tool ?? create(ToolSchema)]),
      );
    }
    return this.#tools;
  }

  /** All providers, those of the suite first. */
  get providers(): Provider[] {
    return [...this.#parts.ownProviders, ...this.#parts.providers.shelf.entries.map(([, { value }]) => value)];
  }

  provider(name: string): Provider | undefined {
    return this.#parts.ownProviders.find((own) => own.name === name) ?? this.#parts.providers.shelf.get(name)?.value;
  }

  /** Resolves when an agent changes, or what its warnings depend on. */
  get agentsChanged(): Promise<void> {
    const { agents, tools, providers } = this.#parts;
    return Promise.race([agents.shelf.changed, tools.shelf.changed, providers.shelf.changed]);
  }

  get agents(): StoredAgent[] {
    return this.#parts.agents.shelf.entries.map(([, { value, revision }]) => this.#told(value, revision));
  }

  agent(name: string): { agent: Agent; revision: number } | undefined {
    const found = this.#parts.agents.shelf.get(name);
    return found?.value.agent && { agent: found.value.agent, revision: found.revision };
  }

  storedAgent(name: string): StoredAgent {
    const found = this.#parts.agents.shelf.get(name) ?? refuseMissing("agent", name);
    return this.#told(found.value, found.revision);
  }

  storedTool(name: string): StoredTool {
    const found = this.#parts.tools.shelf.get(name) ?? refuseMissing("tool", name);
    return { ...found.value, revision: BigInt(found.revision) };
  }

  get storedTools(): StoredTool[] {
    return this.#parts.tools.shelf.entries.map(([, { value, revision }]) => ({ ...value, revision: BigInt(revision) }));
  }

  async applyAgent(agent: Agent, origin: string, validateOnly = false): Promise<StoredAgent> {
    await this.caughtUp();
    const { faults, warnings } = this.#findings(agent);
    if (faults.length > 0) this.#refuse("agent", agent.name, faults);
    const stored = create(StoredAgentSchema, { agent, origin });
    if (validateOnly) return { ...stored, warnings };
    const same = (other: StoredAgent) => !!other.agent && equals(AgentSchema, other.agent, agent);
    await this.#write("agent", this.#parts.agents, { name: agent.name, stored, same });
    return this.storedAgent(agent.name);
  }

  async applyTool(tool: Tool, origin: string): Promise<StoredTool> {
    await this.caughtUp();
    const faults = faultsOfTool(tool, { validator: this.#parts.validator, hasProvider: this.#hasProvider });
    if (faults.length > 0) this.#refuse("tool", tool.name, faults);
    const stored = create(StoredToolSchema, { tool, origin });
    const same = (other: StoredTool) => !!other.tool && equals(ToolSchema, other.tool, tool);
    await this.#write("tool", this.#parts.tools, { name: tool.name, stored, same });
    return this.storedTool(tool.name);
  }

  async applyProvider(provider: Provider): Promise<Provider> {
    const { name, service, url } = provider;
    if (this.#parts.ownProviders.some((own) => own.name === name))
      this.#refuse("provider", name, ["name: belongs to the suite"]);
    if ((service === "") === (url === ""))
      this.#refuse("provider", name, ["service, url: exactly one of them is needed"]);
    if (url !== "" && !/^(https?|grpcs?):\/\/[^/]/.test(url)) {
      this.#refuse("provider", name, ["url: must begin with http://, https://, grpc:// or grpcs://"]);
    }
    const { documents, shelf } = this.#parts.providers;
    const { revision } = await documents.update(name, () => provider);
    await shelf.reached(revision);
    this.#tell(name, `provider ${name} was applied`);
    return provider;
  }

  removeAgent(name: string, origin: string): Promise<void> {
    return this.#remove("agent", this.#parts.agents, name, origin);
  }

  removeTool(name: string, origin: string): Promise<void> {
    return this.#remove("tool", this.#parts.tools, name, origin);
  }

  async removeProvider(name: string): Promise<void> {
    if (this.#parts.ownProviders.some((own) => own.name === name))
      this.#refuse("provider", name, ["name: belongs to the suite"]);
    const isRemoved = await this.#parts.providers.documents.remove(name, () => true);
    if (!isRemoved) refuseMissing("provider", name);
    await this.caughtUp();
    this.#tell(name, `provider ${name} was removed`);
  }

  readonly #hasProvider = (name: string): boolean => this.provider(name) !== undefined;

  #findings(agent: Agent): AgentFindings {
    return checkAgent(agent, { hasTool: (tool) => this.tools.has(tool), hasProvider: this.#hasProvider });
  }

  #told(stored: StoredAgent, revision: number): StoredAgent {
    const { faults, warnings } = stored.agent ? this.#findings(stored.agent) : { faults: [], warnings: [] };
    return { ...stored, revision: BigInt(revision), warnings: [...faults, ...warnings] };
  }

  async #write<T extends { origin: string }>(
    what: string,
    { documents, shelf }: Collection<T>,
    { name, stored, same }: { name: string; stored: T; same: (other: T) => boolean },
  ): Promise<void> {
    const update = await documents.update(name, (standing) => {
      if (standing !== undefined) refuseForeign(what, name, standing.origin, stored.origin);
      return standing !== undefined && standing.origin === stored.origin && same(standing) ? undefined : stored;
    });
    await shelf.reached(update.revision);
    if (update.hasChanged) this.#tell(name, `${what} ${name} was applied from ${stored.origin}`);
  }

  async #remove<T extends { origin: string }>(
    what: string,
    { documents }: Collection<T>,
    name: string,
    origin: string,
  ): Promise<void> {
    const isRemoved = await documents.remove(name, (standing) => {
      refuseForeign(what, name, standing.origin, origin);
      return true;
    });
    if (!isRemoved) refuseMissing(what, name);
    await this.caughtUp();
    this.#tell(name, `${what} ${name} was removed`);
  }

  #refuse(what: string, name: string, faults: string[]): never {
    const message = `${what} ${JSON.stringify(name)} is refused: ${faults.join("; ")}`;
    this.#tell(name, message);
    return refuse("invalid_argument", message, { reason: "CONFIGURATION_REFUSED", metadata: { name } });
  }

  #tell(name: string, message: string): void {
    this.#parts.audit({
      kind: AuditKind.CONFIGURED,
      message,
      ...(message.startsWith("agent") ? { agent: name } : { tool: name }),
    });
  }
}

function refuseForeign(what: string, name: string, standing: string, origin: string): void {
  if ((standing === BY_RPC) === (origin === BY_RPC)) return;
  const owner =
    standing === BY_RPC
      ? "was applied by RPC: delete it there first"
      : `comes from the file ${standing}: change the file`;
  refuse("failed_precondition", `${what} ${JSON.stringify(name)} ${owner}`, { reason: "ORIGIN_DIFFERS" });
}

function refuseMissing(what: string, name: string): never {
  return refuse("not_found", `there is no ${what} ${JSON.stringify(name)}`, {
    reason: "NOT_IN_CATALOGUE",
    metadata: { name },
  });
}
