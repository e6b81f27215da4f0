import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type Scope, ScopeSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { type ReasonName, refuse, refuseField } from "#runtime/failure/failure.ts";
import { type Catalogue, refuseMissing } from "../../catalogue/catalogue.ts";
import { isOfSource } from "../../tools/names.ts";
import { type Resolution, resolve } from "../../tools/resolve.ts";
import { CALLER_PROVIDER } from "../../tools/tool-set/offer.ts";
import type { ToolSet } from "../../tools/tool-set/tool-set.ts";
import { ToolSets } from "../../tools/tool-set/tool-sets.ts";
import { refuseSwitching } from "../failures.ts";
import { decideAsks } from "../offers/asks.ts";
import type { FindProvider } from "../offers/provider-client.ts";
import { ScopeOffers, type ScopeOffersOptions } from "../offers/scope-offers.ts";
import { SharedOffers } from "../offers/shared-offers.ts";
import type { ActiveSession } from "../sessions.ts";
import { agentOfRun, type RunSources } from "./run-sources.ts";

/** An agent as it acts: in a session, by itself, or the catalogue as if one agent had it all. */
export interface AgentContext {
  readonly agent: Agent;
  readonly revision: number;
  readonly principal: string;
  readonly scope: Scope;
  /** In a session: the stored revision since which its agent is the active one. */
  readonly since: number;
  /** Of a run that brings sources: the agent without them, and the key of its context among the session's. */
  readonly run?: { readonly key: string; readonly base: Agent; readonly names: ReadonlySet<string> };
}

export interface ContextsOptions extends Omit<ScopeOffersOptions, "shared"> {
  catalogue: Catalogue;
  find: FindProvider;
  /** How long what nobody asks for is still followed. */
  idleMs: number;
}

interface Open {
  readonly offers: ScopeOffers;
  readonly signature: string;
  readonly since: number;
  /** Of a run that brings sources: its agent without them and with them. */
  readonly run: { readonly base: Agent; readonly agent: Agent } | undefined;
  catalogueVersion: number;
  usedAt: number;
  /** How many wait for what its sources have to say, which may take longer than what is idle is kept. */
  waiting: number;
  tools?: { set: ToolSet; agent: Agent; offersVersion: number; catalogueVersion: number };
}

/** So many stay open at most, but for those that were used lately: their providers may still be on the way with an answer. */
const MOST_OPEN = 2_000;
const LATELY_MS = 1_000;
/** How long a list waits for sources that are starting, unless its reader says otherwise. */
const SOURCE_WAIT_MS = 2_000;
/** A call waits no longer for a source, even for one that is said to be starting for ever. */
const LONGEST_START_MS = 120_000;

/** The contexts in use, each with what its providers offer. */
export class Contexts implements Disposable {
  readonly #options: ContextsOptions;
  readonly #shared: SharedOffers;
  readonly #sets = new ToolSets();
  /** In the order of use, the latest last. */
  readonly #open = new Map<string, Open>();
  /** Sessions that drain, with the revision whose context is not opened any more. */
  readonly #drained = new Map<string, Session>();

  constructor(options: ContextsOptions) {
    this.#options = options;
    this.#shared = new SharedOffers(options);
  }

  /** The context of a session; of a run that brings sources, its own. */
  ofSession({ session, since }: ActiveSession, run: Partial<RunSources> = {}): AgentContext {
    const { agent } = this.#options.catalogue.agent(session.agent) ?? refuseMissing("agent", session.agent);
    const { id: sessionId, principal, contextRevision: revision } = session;
    return this.#ofRun(contextOf(agent, { revision, since, sessionId, principal }), run);
  }

  /** The context of an agent by itself, or of the whole catalogue, as if one agent had it all. */
  ofAgent(name: string | undefined): AgentContext {
    if (name === undefined) return contextOf(create(AgentSchema, { tools: { use: ["*"] } }), { revision: 0 });
    const { agent, revision } = this.#options.catalogue.agent(name) ?? refuseMissing("agent", name);
    return contextOf(agent, { revision });
  }

  /**
   * All tools, once every provider has answered, failed, or taken too long; the caller's as they are declared now. Sources that
   * are starting are waited for that long.
   */
  async tools(context: AgentContext, signal: AbortSignal, sourceWaitMs = SOURCE_WAIT_MS): Promise<ToolSet> {
    const open = this.#opened(context);
    const { offers } = open;
    using _ = this.#waitingIn(open);
    const all = offers.settled(signal).then(() => offers.started(sourceWaitMs, signal));
    await Promise.all([all, offers.refresh(CALLER_PROVIDER, signal)]);
    this.#refuseDrained(context);
    return this.#pinned(open, context.agent);
  }

  /**
   * What a name means, as soon as the provider that has it has answered, whatever the others do. A source that is starting is
   * waited for by calls of its tools alone.
   */
  async find(
    context: AgentContext,
    name: string,
    signal: AbortSignal,
  ): Promise<{ tools: ToolSet; resolution: Resolution }> {
    const open = this.#opened(context);
    const { offers } = open;
    offers.follow();
    const standing = this.#toolSet(open, context.agent);
    if (this.#options.catalogue.pins.isSettled(standing)) {
      const resolution = resolve(standing, name);
      if (isKnown(resolution)) return { tools: standing, resolution };
    }
    using _ = this.#waitingIn(open);
    const untilMs = this.#options.clock.now() + LONGEST_START_MS;
    let isFresh = false;
    for (;;) {
      const changed = offers.changed;
      const isSettled = offers.isSettled;
      const tools = await this.#pinned(open, context.agent);
      const resolution = resolve(tools, name);
      if (isKnown(resolution)) return { tools, resolution };
      if (offers.isClosed) refuseUnlisted(context, "CALL_NOT_STARTED", "it has changed, or its router stops");
      const mayCome =
        resolution.kind !== "found" && offers.starting.some((source) => isOfSource(resolution.reference, source));
      if (isSettled && isFresh && mayCome && this.#options.clock.now() < untilMs) {
        await offers.nextChange(untilMs, signal);
        continue;
      }
      if (isSettled && isFresh) return { tools, resolution };
      if (isSettled) await offers.refresh(CALLER_PROVIDER, signal);
      else if (!(await callPatience.outlasts(changed)))
        refuseUnlisted(context, "BUS_UNAVAILABLE", "the bus did not answer");
      isFresh = isSettled;
      signal.throwIfAborted();
    }
  }

  /** The tools of a session that is in use here, as far as they are known without asking anybody. */
  known(sessionId: string, run: Partial<RunSources> = {}): { tools: ToolSet; contextRevision: number } | undefined {
    const open = this.#open.get(keyOfRun(sessionId, run) ?? `session ${sessionId}`);
    const { agent: name, contextRevision } = open?.offers.scope ?? {};
    const standing = name === undefined ? undefined : this.#options.catalogue.agent(name)?.agent;
    const agent = open?.run && open.run.base === standing ? open.run.agent : standing;
    const isKnown = open?.offers.isSettled && open.offers.isCurrent;
    if (!isKnown || agent === undefined || contextRevision === undefined) return undefined;
    return open.tools?.agent === agent ? { tools: this.#toolSet(open, agent), contextRevision } : undefined;
  }

  /** Closes the session's context, and opens none of that revision until `reopenContext`. */
  closeContext(session: Session): void {
    this.#drained.set(session.id, session);
    for (const [key, open] of this.#open) {
      const isOfSession = open.offers.scope.sessionId === session.id && open.since === session.contextRevision;
      if (isOfSession) this.#close(key, open);
    }
  }

  reopenContext(sessionId: string): void {
    this.#drained.delete(sessionId);
  }

  /** Lets go of what nobody has asked for in a while. */
  closeIdle(): void {
    const before = this.#options.clock.now() - this.#options.idleMs;
    for (const [key, open] of this.#open) if (open.waiting === 0 && open.usedAt < before) this.#close(key, open);
    this.#shared.closeIdle(before);
  }

  [Symbol.dispose](): void {
    for (const [key, open] of this.#open) this.#close(key, open);
    this.#shared[Symbol.dispose]();
  }

  /** The context of a run that brings sources; of any other run, its session's. */
  #ofRun(context: AgentContext, run: Partial<RunSources>): AgentContext {
    const { runId = "", runSources = [], place = "" } = run;
    const key = keyOfRun(context.scope.sessionId, run);
    if (key === undefined) return context;
    if (runId === "") refuseField(`${place}run_id`, "run_sources need the run that brings them");
    const { agent: base, scope } = context;
    const open = this.#open.get(key);
    const takes = (provider: string) => this.#options.catalogue.provider(provider)?.takesRunSources === true;
    const agent = open?.run?.base === base ? open.run.agent : agentOfRun(base, run, takes);
    const names = new Set(runSources.map(({ name }) => name));
    return { ...context, agent, scope: { ...scope, runId }, run: { key, base, names } };
  }

  /** The session was read before it began to drain. */
  #refuseDrained({ scope, since }: AgentContext): void {
    const left = this.#drained.get(scope.sessionId);
    if (left?.contextRevision === since) refuseSwitching(left);
  }

  #opened(context: AgentContext): Open {
    this.#refuseDrained(context);
    const { sessionId, agent } = context.scope;
    const key = context.run?.key ?? (sessionId === "" ? `agent ${agent}` : `session ${sessionId}`);
    const open = this.#standingOrOpened(key, context);
    open.usedAt = this.#options.clock.now();
    this.#open.delete(key);
    this.#open.set(key, open);
    this.#closeOldest();
    return open;
  }

  #standingOrOpened(key: string, context: AgentContext): Open {
    const { catalogue, clock } = this.#options;
    const { agent, contextRevision } = context.scope;
    const standing = this.#open.get(key);
    const { scope } = standing?.offers ?? {};
    const isCurrent =
      scope?.contextRevision === contextRevision && scope.agent === agent && !standing?.offers.isOutdated;
    if (standing && isCurrent && standing.catalogueVersion === catalogue.version) return standing;
    const asks = this.#asks(context);
    const signature = JSON.stringify(
      asks.map(({ provider, client, sources }) => [provider, client?.address, sources.length]),
    );
    if (standing && isCurrent && standing.signature === signature) {
      standing.catalogueVersion = catalogue.version;
      return standing;
    }
    if (standing) this.#close(key, standing);
    const offers = new ScopeOffers(context.scope, asks, { ...this.#options, shared: this.#shared });
    const run = context.run && { base: context.run.base, agent: context.agent };
    return {
      offers,
      signature,
      since: context.since,
      run,
      catalogueVersion: catalogue.version,
      usedAt: clock.now(),
      waiting: 0,
    };
  }

  /** It is in use until that is disposed. */
  #waitingIn(open: Open): Disposable {
    open.waiting += 1;
    return {
      [Symbol.dispose]: () => {
        open.waiting -= 1;
        open.usedAt = this.#options.clock.now();
      },
    };
  }

  /** A session that is at rest holds nothing here for long, and less the more of them there are. */
  #closeOldest(): void {
    if (this.#open.size <= MOST_OPEN) return;
    const [oldest] = this.#open;
    const { clock, startupMs } = this.#options;
    if (oldest !== undefined && oldest[1].waiting === 0 && oldest[1].usedAt < clock.now() - startupMs - LATELY_MS)
      this.#close(...oldest);
  }

  #asks({ agent, scope, run }: AgentContext) {
    const { catalogue, find } = this.#options;
    const providers = catalogue.providers.map(({ name }) => name);
    return decideAsks(agent, {
      catalogue: catalogue.tools,
      providers,
      find,
      hasSession: scope.sessionId !== "",
      ...(run && { fromRun: run.names }),
    });
  }

  /** With everything recorded that its agent pins. */
  async #pinned(open: Open, agent: Agent): Promise<ToolSet> {
    for (;;) {
      const tools = this.#toolSet(open, agent);
      await callPatience.limit(`pinning the tools of agent ${agent.name}`, this.#options.catalogue.pins.settle(tools));
      if (this.#toolSet(open, agent) === tools) return tools;
    }
  }

  #toolSet(open: Open, agent: Agent): ToolSet {
    const { catalogue } = this.#options;
    const { tools, offers } = open;
    const isCurrent = tools?.offersVersion === offers.version && tools.catalogueVersion === catalogue.version;
    if (isCurrent && tools.agent === agent) return tools.set;
    const versions = { offersVersion: offers.version, catalogueVersion: catalogue.version };
    open.tools = { set: this.#sets.of(agent, catalogue, offers.offers), agent, ...versions };
    return open.tools.set;
  }

  #close(key: string, open: Open): void {
    open.offers[Symbol.dispose]();
    if (this.#open.get(key) === open) this.#open.delete(key);
  }
}

/** What nobody has listed may be there: that it is not known is no answer about the tool. */
function refuseUnlisted({ agent }: AgentContext, reason: ReasonName, why: string): never {
  return refuse("unavailable", `the tools of agent ${agent.name} are not listed yet: ${why}, try again`, { reason });
}

/** A tool that its provider has not described yet is waited for: nobody knows what arguments it takes. */
function isKnown(resolution: Resolution): boolean {
  return resolution.kind === "found" && !resolution.entry.isAwaited;
}

/** Undefined for a run that brings no sources. One that brought others under the same id has another context. */
function keyOfRun(sessionId: string, { runId = "", runSources = [] }: Partial<RunSources>): string | undefined {
  if (runSources.length === 0) return undefined;
  const identity = runSources.map(({ name, provider, config }) => [name, provider, config]);
  const digest = createHash("sha256").update(JSON.stringify(identity)).digest("base64url");
  return `run ${sessionId} ${runId} ${digest}`;
}

function contextOf(
  agent: Agent,
  of: { revision: number; since?: number; sessionId?: string; principal?: string },
): AgentContext {
  const { revision, since = 0, sessionId = "", principal = "" } = of;
  const scope = create(ScopeSchema, { sessionId, agent: agent.name, contextRevision: revision, principal });
  return { agent, revision, principal, scope, since };
}
