import { create } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { StoredAgent } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import type { Provider } from "#gen/toolbus/provider/v1/provider_pb.ts";
import type { StoredProvider } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import type { RefusedFile } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import type { CatalogTool } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Grantees } from "#runtime/rpc/access/grantees.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { NameMatcher } from "../tools/names.ts";
import { isByNameOnly } from "../tools/tool-set/executor.ts";
import { type AgentFindings, checkAgent, type OwnSources } from "./checks/check-agent.ts";
import type { Pins } from "./pins/pins.ts";

/** A kind of thing in the catalogue: where it is written, and what all routers have read of it. */
export interface Collection<T> {
  readonly bucket: Bucket<T>;
  readonly view: BucketView<T>;
  /** Waits until the view shows every write that was acknowledged before the call. */
  readonly caughtUp: () => Promise<void>;
}

export type CatalogueKind = keyof Collections;

export interface Collections {
  agents: Collection<StoredAgent>;
  tools: Collection<CatalogTool>;
  providers: Collection<StoredProvider>;
}

export interface CatalogueParts extends Collections {
  /** The providers of the suite and of the configuration, in their order; they cannot be changed. */
  ownProviders: readonly StoredProvider[];
  grantees: Grantees;
  pins: Pins;
  ownSources: OwnSources;
  /** Waits until all views show every write that was acknowledged before the call. */
  caughtUp: () => Promise<void>;
  /** The same of one kind, for who only reads: while nothing can be stored, what its view shows is what there is to tell. */
  known: (kind: CatalogueKind | "grants") => Promise<void>;
}

/** Agents, tools and providers as all routers have read them. */
export class Catalogue {
  readonly #parts: CatalogueParts;
  readonly caughtUp: CatalogueParts["caughtUp"];
  readonly known: CatalogueParts["known"];
  readonly pins: Pins;
  /** Of agents, and of what their warnings depend on. */
  readonly agentChanges = createChanges();
  #tools = new Map<string, Tool>();
  #toolsVersion = -1;
  #refusedTools: ReadonlyMap<string, RefusedFile> = new Map();
  #refusals = 0;

  constructor(parts: CatalogueParts) {
    this.#parts = parts;
    this.caughtUp = parts.caughtUp;
    this.known = parts.known;
    this.pins = parts.pins;
    for (const { view } of [parts.agents, parts.tools, parts.providers]) view.changes.listen(this.agentChanges.tell);
  }

  /** Whether the principal may use the agent, as far as is known here. */
  mayUse(principal: string, { name, grants }: Agent): boolean {
    return this.#parts.grantees.isGranted(`agent:${name}`, grants, principal);
  }

  /** Whether the principal may have calls of the external tool, as far as is known here. */
  mayWatch(principal: string, tool: string): boolean {
    return this.#parts.grantees.isGranted(`tool:${tool}`, this.tools.get(tool)?.grants, principal);
  }

  /** SEC-2: refuses whoever may not use the agent, by what stands now, if there is one. */
  async requireAgent(name: string, caller: Caller): Promise<void> {
    await this.#parts.agents.caughtUp();
    const stored = this.agent(name);
    if (stored) await this.#parts.grantees.require(`agent:${name}`, stored.agent.grants, caller);
  }

  /** The same for whoever may not watch for calls of the tool. */
  async requireTool(name: string, caller: Caller): Promise<void> {
    await this.#parts.tools.caughtUp();
    await this.#parts.grantees.require(`tool:${name}`, this.tools.get(name)?.grants, caller);
  }

  /** Grows with each change of tools, providers, pins and refused files of tools. */
  get version(): number {
    const { tools, providers, pins } = this.#parts;
    return tools.view.version + providers.view.version + pins.version + this.#refusals;
  }

  /** The files of tools that are refused, by the tool's name. */
  get refusedTools(): ReadonlyMap<string, RefusedFile> {
    return this.#refusedTools;
  }

  /** Who reads the files tells which are refused. */
  setRefusedTools(files: ReadonlyMap<string, RefusedFile>): void {
    this.#refusedTools = files;
    this.#refusals += 1;
  }

  get tools(): ReadonlyMap<string, Tool> {
    const { view } = this.#parts.tools;
    if (this.#toolsVersion !== view.version) {
      this.#toolsVersion = view.version;
      this.#tools = new Map(
        view.entries.map(([, { value }]) => [value.tool?.name ?? "", value.tool ?? create(ToolSchema)]),
      );
    }
    return this.#tools;
  }

  /** All providers: those of the suite, then the others by age, so that one that is added takes over no name of another. */
  get providers(): Provider[] {
    const byAge = this.#parts.providers.view.entries.sort(([, one], [, other]) => one.revision - other.revision);
    const stored = [...this.#parts.ownProviders, ...byAge.map(([, { value }]) => value)];
    return stored.flatMap(({ provider }) => (provider ? [provider] : []));
  }

  provider(name: string): Provider | undefined {
    return (this.#ownProvider(name) ?? this.#parts.providers.view.get(name)?.value)?.provider;
  }

  storedProvider(name: string): StoredProvider {
    const own = this.#ownProvider(name);
    if (own !== undefined) return own;
    const found = this.#parts.providers.view.get(name) ?? refuseMissing("provider", name);
    return { ...found.value, revision: BigInt(found.revision) };
  }

  /** By name. */
  get storedProviders(): StoredProvider[] {
    const names = this.providers.map(({ name }) => name);
    return [...new Set(names)].sort().map((name) => this.storedProvider(name));
  }

  /** By name. */
  get agents(): StoredAgent[] {
    return this.#parts.agents.view.entries.map(([, { value, revision }]) => this.#storedAgent(value, revision));
  }

  agent(name: string): { agent: Agent; revision: number } | undefined {
    const found = this.#parts.agents.view.get(name);
    return found?.value.agent && { agent: found.value.agent, revision: found.revision };
  }

  /** No agent that this router has read has a greater revision. */
  get lastAgentRevision(): number {
    return this.#parts.agents.view.reachedRevision;
  }

  storedAgent(name: string): StoredAgent {
    const found = this.#parts.agents.view.get(name) ?? refuseMissing("agent", name);
    return this.#storedAgent(found.value, found.revision);
  }

  catalogTool(name: string): CatalogTool {
    const found = this.#parts.tools.view.get(name) ?? refuseMissing("tool", name);
    return { ...found.value, revision: BigInt(found.revision) };
  }

  /** By name. */
  get catalogTools(): CatalogTool[] {
    return this.#parts.tools.view.entries.map(([, { value, revision }]) => ({ ...value, revision: BigInt(revision) }));
  }

  isOwnProvider(name: string): boolean {
    return this.#ownProvider(name) !== undefined;
  }

  #ownProvider(name: string): StoredProvider | undefined {
    return this.#parts.ownProviders.find((own) => own.provider?.name === name);
  }

  /** The faults and warnings of an agent by the current catalogue. */
  findings(agent: Agent): AgentFindings {
    const hasProvider = (name: string) => this.provider(name) !== undefined;
    const byName = (tool: string) => isByNameOnly(this.tools.get(tool));
    const hasToolLike = (matches: NameMatcher) => this.tools.keys().some((tool) => !byName(tool) && matches(tool));
    const hasTool = (tool: string) => this.tools.has(tool);
    const findAgent = (name: string) => (name === agent.name ? agent : this.agent(name)?.agent);
    const { ownSources } = this.#parts;
    const refusedFile = (tool: string) => this.#refusedTools.get(tool)?.file;
    return checkAgent(agent, {
      ...{ hasTool, hasToolLike, isByNameOnly: byName, refusedFile, hasProvider, findAgent, ownSources },
    });
  }

  #storedAgent(stored: StoredAgent, revision: number): StoredAgent {
    const { faults, warnings } = stored.agent ? this.findings(stored.agent) : { faults: [], warnings: [] };
    return { ...stored, revision: BigInt(revision), warnings: [...faults, ...warnings] };
  }
}

const missing = { agent: "AGENT_NOT_FOUND", tool: "TOOL_NOT_FOUND", provider: "PROVIDER_NOT_FOUND" } as const;

export function refuseMissing(what: keyof typeof missing, name: string): never {
  return refuse("not_found", `there is no ${what} ${JSON.stringify(name)}`, {
    reason: missing[what],
    metadata: { [what]: name },
  });
}
