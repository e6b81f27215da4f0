import type { Scope } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { CALLER_PROVIDER, type Offer } from "../../tools/tool-set/offer.ts";
import { type Ask, OfferWatch, type OfferWatchOptions } from "./offer-watch.ts";
import type { SharedOffer, SharedOffers } from "./shared-offers.ts";

export interface ScopeOffersOptions extends Pick<OfferWatchOptions, "clock" | "startupMs" | "judge"> {
  /** Offers that are followed once for all scopes; by default none. */
  shared?: SharedOffers;
  /** Called for each provider or source that turns unavailable, or some of whose tools do, with the reason. */
  onUnavailable: (scope: Scope, source: string, reason: string) => void;
  /** Called for each that is available again. */
  onAvailable: (scope: Scope, source: string) => void;
}

/**
 * What all providers of one agent in one session offer, each followed by itself, so that none delays another. The caller is
 * asked at each listing, and followed from the session's first call on: a session that makes none costs its relay no stream.
 */
export class ScopeOffers implements Disposable {
  readonly scope: Scope;
  readonly #options: ScopeOffersOptions;
  readonly #watches: OfferWatch[] = [];
  readonly #shared: SharedOffer[] = [];
  readonly #closing = new AbortController();
  readonly #reported = new Map<string, string>();
  #version = 0;
  #changed = Promise.withResolvers<void>();

  constructor(scope: Scope, asks: readonly Ask[], options: ScopeOffersOptions) {
    this.scope = scope;
    this.#options = options;
    const { clock, startupMs, judge } = options;
    const { signal } = this.#closing;
    const onChange = () => this.#change();
    const onAlike = (ask: Ask) => options.shared?.begin(ask);
    for (const ask of asks) {
      const shared = options.shared?.join(ask, onChange);
      if (shared !== undefined) this.#shared.push(shared);
      const own = () => new OfferWatch(ask, { scope, clock, startupMs, judge, signal, onChange, onAlike });
      const watch = shared?.watch ?? own();
      this.#watches.push(watch);
      if (ask.provider !== CALLER_PROVIDER) watch.follow();
    }
  }

  /** Follows every change from here on. */
  follow(): void {
    for (const watch of this.#watches) watch.follow();
  }

  /** Whether every change is followed. */
  get isCurrent(): boolean {
    return this.#watches.every((watch) => watch.isCurrent);
  }

  /** Whether it relies on an offer that is not the same in every scope any more. */
  get isOutdated(): boolean {
    return this.#shared.some(({ watch }) => watch.offer.isAlike !== true);
  }

  /** Grows with each change of what is offered. */
  get version(): number {
    return this.#version;
  }

  get offers(): Offer[] {
    return this.#watches.map((watch) => watch.offer);
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  get isSettled(): boolean {
    return this.isClosed || this.#watches.every((watch) => watch.isSettled);
  }

  /** Resolves at the next change. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** The sources that are on their way. */
  get starting(): string[] {
    const known = this.offers.filter(({ failure }) => failure === "").flatMap(({ sources }) => sources);
    return known.filter(({ starting }) => starting).map(({ source }) => source);
  }

  /** Resolves when no source is on its way any more, or the time is over. */
  async started(limitMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const untilMs = clock.now() + limitMs;
    while (this.starting.length > 0 && !this.isClosed && clock.now() < untilMs) await this.nextChange(untilMs, signal);
  }

  /** Resolves at the next change, at the latest at that time. */
  async nextChange(untilMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await comesWithin(untilMs - clock.now(), unlessAborted(this.changed, signal), clock);
  }

  async settled(signal: AbortSignal): Promise<void> {
    while (!this.isSettled) {
      await this.changed;
      signal.throwIfAborted();
    }
  }

  async refresh(provider: string, signal: AbortSignal): Promise<void> {
    const asked = this.#watches.filter((watch) => watch.ask.provider === provider);
    await Promise.all(asked.map((watch) => watch.refresh(signal)));
  }

  [Symbol.dispose](): void {
    this.#closing.abort(new Error("the scope was closed"));
    for (const shared of this.#shared) shared[Symbol.dispose]();
    this.#changed.resolve();
  }

  #change(): void {
    this.#version += 1;
    this.#tellUnavailable();
    const waiting = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    waiting.resolve();
  }

  #tellUnavailable(): void {
    const reasons = new Map(this.offers.flatMap(complaintsOf));
    for (const [source, reason] of reasons) {
      if (this.#reported.get(source) === reason) continue;
      this.#reported.set(source, reason);
      this.#options.onUnavailable(this.scope, source, reason);
    }
    for (const source of this.#reported.keys()) {
      if (reasons.has(source)) continue;
      this.#reported.delete(source);
      this.#options.onAvailable(this.scope, source);
    }
  }
}

function complaintsOf({ provider, declared, sources, failure, unfit = "" }: Offer): [source: string, reason: string][] {
  if (failure !== "") return [[provider, failure]];
  const failing = sources.flatMap(({ source, available, reason, starting }): [string, string][] =>
    available || starting ? [] : [[source, reason]],
  );
  if (unfit === "") return failing;
  const [only = provider] = declared.size === 1 ? declared.keys() : [];
  return [[only, `not all of its tools can be called: ${unfit}`], ...failing];
}
