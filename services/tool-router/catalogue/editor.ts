import { create, equals } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type StoredAgent, StoredAgentSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type Provider, ProviderSchema } from "#gen/toolbus/provider/v1/provider_pb.ts";
import { type StoredProvider, StoredProviderSchema } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { type CatalogTool, CatalogToolSchema } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import { requireRevision } from "#runtime/failure/expected-revision.ts";
import { Failure, type FieldViolation, refuse } from "#runtime/failure/failure.ts";
import type { Validator } from "#runtime/schema/json-schema/validator.ts";
import { type Catalogue, type Collection, type Collections, refuseMissing } from "./catalogue.ts";
import { faultsOfServers, type ServerCheck } from "./checks/check-server.ts";
import { faultsOfTool } from "./checks/check-tool.ts";
import { faultsByContract } from "./checks/contract-faults.ts";

/** The origin of what was applied by RPC; of everything else it is the file's name. */
export const BY_RPC = "rpc";

/** What was to be applied has faults; each stands by itself, with its path. */
export class ConfigurationRefused extends Failure {
  readonly faults: readonly string[];

  constructor(what: string, message: string, { name, faults }: { name: string; faults: readonly string[] }) {
    super("invalid_argument", message, {
      reason: "INVALID_REQUEST",
      metadata: { name },
      fieldViolations: faults.map((fault) => violationFrom(what, fault)),
    });
    this.faults = faults;
  }
}

/** The author of a change, and its conditions. */
export interface Terms {
  /** A file's name, or `BY_RPC`. */
  origin: string;
  /** Who changes it, by RPC. */
  by?: string;
  /** The revision to replace, 0 for none; absent: any. */
  expectedRevision?: bigint | undefined;
  /** All is checked, and nothing stored. */
  validateOnly?: boolean;
}

export interface EditorParts extends Collections {
  catalogue: Catalogue;
  validator: Validator;
  audit: Audit;
  servers: ServerCheck;
  /** By name, for headers of gateway tools. */
  secrets: ReadonlyMap<string, string>;
  onAgentRemoved: (name: string) => void;
}

/**
 * Changes the catalogue. What is wrong is refused with all its faults. What comes from a file belongs to the file, what was
 * applied belongs to its appliers: neither overwrites the other.
 */
export class CatalogueEditor {
  readonly #parts: EditorParts;

  constructor(parts: EditorParts) {
    this.#parts = parts;
  }

  async applyAgent(agent: Agent, terms: Terms): Promise<StoredAgent> {
    const { catalogue, agents } = this.#parts;
    await this.#caughtUp(terms);
    const faults = this.#faultsOfAgent(agent);
    if (faults.length > 0) this.#refuse("agent", agent.name, faults, terms);
    const { warnings } = catalogue.findings(agent);
    const stored = create(StoredAgentSchema, { agent, origin: terms.origin });
    const same = (other: StoredAgent) => !!other.agent && equals(AgentSchema, other.agent, agent);
    const revision = await this.#write("agent", agents, { name: agent.name, stored, same, terms });
    return { ...stored, revision, warnings };
  }

  /**
   * Everything that is wrong with an agent, by the contract and as the catalogue stands; the same for files and RPC. With what is
   * wrong goes what would be doubtful once that is mended.
   */
  #faultsOfAgent(agent: Agent): string[] {
    const { catalogue, servers } = this.#parts;
    const { faults: found, warnings } = catalogue.findings(agent);
    const faults = [...faultsByContract(AgentSchema, agent), ...found, ...faultsOfServers(agent, servers)];
    if (faults.length === 0) return [];
    const paths = new Set(faults.map(pathOf));
    return [...faults, ...warnings.filter((one) => !paths.has(pathOf(one))).map((one) => `${one} (a warning)`)];
  }

  async applyTool(tool: Tool, terms: Terms): Promise<CatalogTool> {
    await this.#caughtUp(terms);
    const faults = await this.#faultsOfTool(tool);
    if (faults.length > 0) this.#refuse("tool", tool.name, faults, terms);
    const stored = create(CatalogToolSchema, { tool, origin: terms.origin });
    const same = (other: CatalogTool) => !!other.tool && equals(ToolSchema, other.tool, tool);
    const revision = await this.#write("tool", this.#parts.tools, { name: tool.name, stored, same, terms });
    return { ...stored, revision };
  }

  /** Thousands of files are applied at a start: who loads them has caught up once, for all. */
  async #caughtUp({ origin }: Terms): Promise<void> {
    if (origin === BY_RPC) await this.#parts.catalogue.caughtUp();
  }

  async #faultsOfTool(tool: Tool): Promise<string[]> {
    const { catalogue, validator, secrets } = this.#parts;
    const check = { validator, secrets, hasProvider: (name: string) => catalogue.provider(name) !== undefined };
    return [...faultsByContract(ToolSchema, tool), ...(await faultsOfTool(tool, check))];
  }

  async applyProvider(provider: Provider, terms: Terms): Promise<StoredProvider> {
    const { name, address } = provider;
    if (this.#parts.catalogue.isOwnProvider(name))
      this.#refuse("provider", name, ["name: belongs to the suite"], terms);
    if (!address.value) this.#refuse("provider", name, ["address: a service or a url is needed"], terms);
    if (address.case === "url" && !/^(https?|grpcs?):\/\/[^/]/.test(address.value))
      this.#refuse("provider", name, ["url: must begin with http://, https://, grpc:// or grpcs://"], terms);
    const stored = create(StoredProviderSchema, { provider, origin: terms.origin });
    const same = (other: StoredProvider) => !!other.provider && equals(ProviderSchema, other.provider, provider);
    const revision = await this.#write("provider", this.#parts.providers, { name, stored, same, terms });
    return { ...stored, revision };
  }

  async removeAgent(name: string, terms: Terms): Promise<void> {
    await this.#remove("agent", this.#parts.agents, name, terms);
    this.#parts.onAgentRemoved(name);
    await this.#parts.catalogue.pins.forget(name);
  }

  removeTool(name: string, terms: Terms): Promise<void> {
    return this.#remove("tool", this.#parts.tools, name, terms);
  }

  async removeProvider(name: string, terms: Terms): Promise<void> {
    if (this.#parts.catalogue.isOwnProvider(name))
      this.#refuse("provider", name, ["name: belongs to the suite"], terms);
    await this.#remove("provider", this.#parts.providers, name, terms);
  }

  /** Returns the revision afterwards. A value that is stored already is not written again. */
  async #write<T extends { origin: string }>(
    what: string,
    { bucket, view }: Collection<T>,
    { name, stored, same, terms }: { name: string; stored: T; same: (other: T) => boolean; terms: Terms },
  ): Promise<bigint> {
    const decide = (standing: T | undefined, revision: number) => {
      if (standing !== undefined) refuseForeign(what, name, standing.origin, stored.origin);
      requireRevision({ what, name, revision, expected: terms.expectedRevision });
      return standing !== undefined && standing.origin === stored.origin && same(standing) ? undefined : stored;
    };
    if (terms.validateOnly) {
      const { value, revision = 0 } = (await bucket.read(name)) ?? {};
      decide(value, revision);
      return BigInt(revision);
    }
    const seen = terms.origin === BY_RPC ? undefined : await updateAsSeen({ bucket, view }, name, decide);
    const update = seen ?? (await bucket.update(name, decide));
    await view.reached(update.revision);
    if (update.hasChanged)
      this.#tell(
        name,
        `${what} ${name} was applied from ${stored.origin}${terms.by ? ` by ${terms.by}` : ""}`,
        terms.by,
      );
    return BigInt(update.revision);
  }

  async #remove<T extends { origin: string }>(
    what: "agent" | "tool" | "provider",
    { bucket }: Collection<T>,
    name: string,
    { origin, expectedRevision: expected, by }: Terms,
  ): Promise<void> {
    const isRemoved = await bucket.remove(name, (standing, revision) => {
      refuseForeign(what, name, standing.origin, origin);
      requireRevision({ what, name, revision, expected });
      return true;
    });
    if (!isRemoved) refuseMissing(what, name);
    await this.#parts.catalogue.caughtUp();
    this.#tell(name, `${what} ${name} was removed${by ? ` by ${by}` : ""}`, by);
  }

  /** A refused file is audited once, with all its faults, where the files are read; what is only checked, which all may, is not. */
  #refuse(what: string, name: string, faults: string[], { origin, validateOnly, by }: Terms): never {
    const message = `${what} ${JSON.stringify(name)} is refused: ${faults.join("; ")}`;
    if (origin === BY_RPC && !validateOnly) this.#tell(name, message, by);
    throw new ConfigurationRefused(what, message, { name, faults });
  }

  #tell(name: string, message: string, by?: string): void {
    const named = message.startsWith("agent") ? { agent: name } : { tool: name };
    this.#parts.audit({ kind: AuditKind.CONFIGURED, message, ...named }, by);
  }
}

/**
 * Decides by the view, which has caught up, and asks the store nothing unless there is something to write: thousands of files are
 * loaded at a start, and most were stored by the one before. Undefined if another has written meanwhile.
 */
async function updateAsSeen<T>(
  { bucket, view }: Pick<Collection<T>, "bucket" | "view">,
  name: string,
  decide: (standing: T | undefined, revision: number) => T | undefined,
): Promise<{ revision: number; hasChanged: boolean } | undefined> {
  const { value: standing, revision = 0 } = view.get(name) ?? {};
  const value = decide(standing, revision);
  if (value === undefined) return { revision, hasChanged: false };
  const written = await bucket.replace(name, value, revision);
  return written === undefined ? undefined : { revision: written, hasChanged: true };
}

function violationFrom(what: string, fault: string): FieldViolation {
  const [path = ""] = /^[\w.[\]-]+(?=: )/.exec(fault) ?? [];
  return path === ""
    ? { field: what, message: fault }
    : { field: `${what}.${path}`, message: fault.slice(path.length + 2) };
}

const pathOf = (finding: string): string => finding.slice(0, finding.indexOf(": "));

function refuseForeign(what: string, name: string, standing: string, origin: string): void {
  if ((standing === BY_RPC) === (origin === BY_RPC)) return;
  const owner =
    standing === BY_RPC
      ? "was applied by RPC: delete it there first"
      : `comes from the file ${standing}: change the file`;
  refuse("failed_precondition", `${what} ${JSON.stringify(name)} ${owner}`, {
    reason: "ORIGIN_MISMATCH",
    metadata: { origin: standing },
  });
}
