import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import type { ToolSet } from "../../tools/tool-set/tool-set.ts";
import { decideAsks } from "../offers/asks.ts";
import type { FindProvider } from "../offers/provider-client.ts";
import { ScopeOffers, type ScopeOffersOptions } from "../offers/scope-offers.ts";
import { SharedOffers } from "../offers/shared-offers.ts";
import { type AgentContext, keyOf } from "./agent-context.ts";

export interface ContextsOptions extends Omit<ScopeOffersOptions, "shared"> {
  catalogue: Catalogue;
  find: FindProvider;
  /** How long what nobody asks for is still followed. */
  idleMs: number;
}

/** A context in use, with what its providers offer. */
export interface OpenContext {
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

/** The contexts in use, in the order of use: those that nobody asks for are closed. */
export class OpenContexts implements Disposable {
  readonly #options: ContextsOptions;
  readonly #shared: SharedOffers;
  /** The latest last. */
  readonly #open = new Map<string, OpenContext>();

  constructor(options: ContextsOptions) {
    this.#options = options;
    this.#shared = new SharedOffers(options);
  }

  get(key: string): OpenContext | undefined {
    return this.#open.get(key);
  }

  /** Opens the context, unless it is open as it stands in the catalogue now. */
  use(context: AgentContext): OpenContext {
    const key = keyOf(context);
    const open = this.#standingOrOpened(key, context);
    open.usedAt = this.#options.clock.now();
    this.#open.delete(key);
    this.#open.set(key, open);
    this.#closeOldest();
    return open;
  }

  /** It is in use until that is disposed. */
  waitingIn(open: OpenContext): Disposable {
    open.waiting += 1;
    return {
      [Symbol.dispose]: () => {
        open.waiting -= 1;
        open.usedAt = this.#options.clock.now();
      },
    };
  }

  /** Closes what is open of this revision of the session. */
  close(session: Session): void {
    for (const [key, open] of this.#open) {
      const isOfSession = open.offers.scope.sessionId === session.id && open.since === session.contextRevision;
      if (isOfSession) this.#close(key, open);
    }
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

  #standingOrOpened(key: string, context: AgentContext): OpenContext {
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

  #close(key: string, open: OpenContext): void {
    open.offers[Symbol.dispose]();
    if (this.#open.get(key) === open) this.#open.delete(key);
  }
}
