import { create } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { type ReasonName, refuse, refuseField } from "#runtime/failure/failure.ts";
import { refuseMissing } from "../../catalogue/catalogue.ts";
import { isOfSource } from "../../tools/names.ts";
import { type Resolution, resolve } from "../../tools/resolve.ts";
import { CALLER_PROVIDER } from "../../tools/tool-set/offer.ts";
import type { ToolSet } from "../../tools/tool-set/tool-set.ts";
import { ToolSets } from "../../tools/tool-set/tool-sets.ts";
import { refuseSwitching } from "../failures.ts";
import type { ActiveSession } from "../sessions.ts";
import { type AgentContext, contextOf, keyOfRun, keyOfSession } from "./agent-context.ts";
import { type ContextsOptions, type OpenContext, OpenContexts } from "./open-contexts.ts";
import { agentOfRun, type RunSources } from "./sources/run-sources.ts";

/** How long a list waits for sources that are starting, unless its reader says otherwise. */
const SOURCE_WAIT_MS = 2_000;
/** A call waits no longer for a source, even for one that is said to be starting for ever. */
const LONGEST_START_MS = 120_000;

/** What agents have: their contexts, and the tools that these mean. */
export class Contexts implements Disposable {
  readonly #options: ContextsOptions;
  readonly #open: OpenContexts;
  readonly #sets = new ToolSets();
  /** Sessions that drain, with the revision whose context is not opened any more. */
  readonly #drained = new Map<string, Session>();

  constructor(options: ContextsOptions) {
    this.#options = options;
    this.#open = new OpenContexts(options);
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
    using _ = this.#open.waitingIn(open);
    const all = offers.settled(signal).then(() => offers.started(sourceWaitMs, signal));
    await Promise.all([all, offers.refresh(CALLER_PROVIDER, signal)]);
    this.#refuseDrained(context);
    return this.#pinned(open, context.agent);
  }

  /** Waits until the context's sources offer other tools, at most so long; gives whether they do. */
  async waitForChange(
    context: AgentContext,
    isOther: (tools: ToolSet) => boolean,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const open = this.#opened(context);
    const { clock } = this.#options;
    using _ = this.#open.waitingIn(open);
    const untilMs = clock.now() + waitMs;
    const hasChanged = () => open.offers.isClosed || isOther(this.#toolSet(open, context.agent));
    while (!hasChanged() && clock.now() < untilMs) await open.offers.nextChange(untilMs, signal);
    return hasChanged();
  }

  /**
   * What a name means, as soon as the provider that has it has answered, whatever the others do. A source that is starting is
   * waited for by those who name its tools alone, at most so long.
   */
  async find(
    context: AgentContext,
    name: string,
    signal: AbortSignal,
    longestStartMs = LONGEST_START_MS,
  ): Promise<{ tools: ToolSet; resolution: Resolution }> {
    const open = this.#opened(context);
    const { offers } = open;
    offers.follow();
    const standing = this.#toolSet(open, context.agent);
    if (this.#options.catalogue.pins.isSettled(standing)) {
      const resolution = resolve(standing, name);
      if (isKnown(resolution)) return { tools: standing, resolution };
    }
    using _ = this.#open.waitingIn(open);
    const untilMs = this.#options.clock.now() + longestStartMs;
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
    const open = this.#open.get(keyOfRun(sessionId, run) ?? keyOfSession(sessionId));
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
    this.#open.close(session);
  }

  reopenContext(sessionId: string): void {
    this.#drained.delete(sessionId);
  }

  /** Lets go of what nobody has asked for in a while. */
  closeIdle(): void {
    this.#open.closeIdle();
  }

  [Symbol.dispose](): void {
    this.#open[Symbol.dispose]();
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

  #opened(context: AgentContext): OpenContext {
    this.#refuseDrained(context);
    return this.#open.use(context);
  }

  /** With everything recorded that its agent pins. */
  async #pinned(open: OpenContext, agent: Agent): Promise<ToolSet> {
    for (;;) {
      const tools = this.#toolSet(open, agent);
      await callPatience.limit(`pinning the tools of agent ${agent.name}`, this.#options.catalogue.pins.settle(tools));
      if (this.#toolSet(open, agent) === tools) return tools;
    }
  }

  #toolSet(open: OpenContext, agent: Agent): ToolSet {
    const { catalogue } = this.#options;
    const { tools, offers } = open;
    const isCurrent = tools?.offersVersion === offers.version && tools.catalogueVersion === catalogue.version;
    if (isCurrent && tools.agent === agent) return tools.set;
    const versions = { offersVersion: offers.version, catalogueVersion: catalogue.version };
    open.tools = { set: this.#sets.of(agent, catalogue, offers.offers), agent, ...versions };
    return open.tools.set;
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
