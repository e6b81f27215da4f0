import { create } from "@bufbuild/protobuf";
import { ScopeSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type Changes, createChanges } from "#runtime/collections/changes.ts";
import { type Ask, OfferWatch, type OfferWatchOptions } from "./offer-watch.ts";

/** An offer that a scope shares with others, until it is disposed. */
export interface SharedOffer extends Disposable {
  readonly watch: OfferWatch;
}

interface Followed {
  readonly watch: OfferWatch;
  readonly closing: AbortController;
  /** What to do in each scope at a change. */
  readonly changes: Changes;
  usedAt: number;
}

/**
 * What providers offer alike in all scopes, each followed once for all of them. The first scope follows it alone and learns
 * that it is alike; the scopes that are opened when it is followed here share it.
 */
export class SharedOffers implements Disposable {
  readonly #options: Pick<OfferWatchOptions, "clock" | "startupMs" | "judge">;
  readonly #followed = new Map<string, Followed>();

  constructor(options: Pick<OfferWatchOptions, "clock" | "startupMs" | "judge">) {
    this.#options = options;
  }

  /** Follows it from here on, unless that is done already. */
  begin(ask: Ask): void {
    const key = keyOf(ask);
    if (this.#followed.has(key)) return;
    const { clock } = this.#options;
    const closing = new AbortController();
    const changes = createChanges();
    const scope = create(ScopeSchema);
    const watch = new OfferWatch(ask, { ...this.#options, scope, signal: closing.signal, onChange: changes.tell });
    this.#followed.set(key, { watch, closing, changes, usedAt: clock.now() });
    watch.follow();
  }

  /** Undefined while it is not known to be alike. */
  join(ask: Ask, onChange: () => void): SharedOffer | undefined {
    const found = ask.sources.length === 0 ? this.#followed.get(keyOf(ask)) : undefined;
    if (found?.watch.offer.isAlike !== true) return undefined;
    found.usedAt = this.#options.clock.now();
    return { watch: found.watch, [Symbol.dispose]: found.changes.listen(onChange)[Symbol.dispose] };
  }

  /** Lets go of what no scope has shared since then. */
  closeIdle(beforeMs: number): void {
    for (const [key, one] of this.#followed) {
      if (!one.changes.isFollowed && one.usedAt < beforeMs) this.#close(key, one);
    }
  }

  [Symbol.dispose](): void {
    for (const [key, one] of this.#followed) this.#close(key, one);
  }

  #close(key: string, { closing }: Followed): void {
    closing.abort(new Error("no scope shares the offer"));
    this.#followed.delete(key);
  }
}

function keyOf({ provider, client }: Ask): string {
  return `${provider} ${client?.address}`;
}
