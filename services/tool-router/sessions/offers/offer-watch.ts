import type {
  GetProvidedToolsResponse,
  Scope,
  WatchProvidedToolsResponse,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { outsideTrace } from "#runtime/telemetry/trace-context.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { Offer } from "../../tools/tool-set/offer.ts";
import type { JudgeOffer } from "./fitness/fitness.ts";
import type { ProviderClient } from "./provider-client.ts";

export interface Ask {
  readonly provider: string;
  /** Undefined when the catalogue has no provider of that name. */
  readonly client: ProviderClient | undefined;
  /** What the agent declares for it; empty asks for what it offers by itself. */
  readonly sources: readonly Source[];
}

export interface OfferWatchOptions {
  scope: Scope;
  clock: Clock;
  /** How long the first answer may take until the provider counts as unavailable. A later answer still counts. */
  startupMs: number;
  judge: JudgeOffer;
  signal: AbortSignal;
  onChange: () => void;
  /** Called when the provider says that it offers the same in every scope. */
  onAlike?: (ask: Ask) => void;
}

/** Changes are read at most this often; more of them wait on the provider's side of the stream. */
const BETWEEN_CHANGES_MS = 50;

/** A stream that lived this long was a good one. */
const LASTING_MS = 1_000;

/**
 * What one provider offers in one scope, followed from when somebody says so. A stream that ends is opened again, after waits that grow but stay below
 * a second. The tools that were known stay known meanwhile; only a stream that brings nothing makes them unavailable.
 */
export class OfferWatch {
  readonly ask: Ask;
  readonly #options: OfferWatchOptions;
  #offer: Offer;
  #isFollowing = false;
  #isCurrent = false;
  #received = 0;
  #taken = 0;

  constructor(ask: Ask, options: OfferWatchOptions) {
    this.ask = ask;
    this.#options = options;
    const declared = new Map(ask.sources.map((source) => [source.name, source]));
    this.#offer = { provider: ask.provider, declared, tools: [], sources: [], isAwaited: true, failure: "" };
    if (ask.client === undefined) this.#fail(`there is no provider ${JSON.stringify(ask.provider)}`);
  }

  /** Changes are followed from here on. */
  follow(): void {
    if (this.#isFollowing || this.ask.client === undefined) return;
    this.#isFollowing = true;
    const { client } = this.ask;
    void callPatience.exit(() => outsideTrace(() => this.#follow(client)));
  }

  /** Whether every change is followed: the offer is current, but for changes on their way. */
  get isCurrent(): boolean {
    return this.#isCurrent || this.ask.client === undefined;
  }

  get offer(): Offer {
    return this.#offer;
  }

  /** Whether it has answered, failed, or taken too long. */
  get isSettled(): boolean {
    return !this.#offer.isAwaited;
  }

  /** Asks afresh, so that what was declared before this call is seen after it. */
  async refresh(signal: AbortSignal): Promise<void> {
    const { scope, startupMs } = this.#options;
    using limit = timeoutSignal(startupMs);
    using ending = openEnding(signal, limit);
    try {
      const listed = await this.ask.client?.listTools(
        { scope, sources: [...this.ask.sources] },
        { signal: ending.signal },
      );
      if (listed !== undefined) await this.#take(listed);
    } catch (error) {
      signal.throwIfAborted();
      this.#fail(messageFromUnknown(error));
    }
  }

  async #follow(client: ProviderClient): Promise<void> {
    const { scope, clock, signal } = this.#options;
    void this.#limitStartup();
    const follow = async (works: () => void) => {
      const openedAt = clock.now();
      let hasAnswered = false;
      try {
        for await (const message of client.watchTools({ scope, sources: [...this.ask.sources] }, { signal })) {
          hasAnswered = true;
          this.#isCurrent = true;
          await this.#take(message);
          await clock.delay(BETWEEN_CHANGES_MS, signal);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#isCurrent = true;
        if (!hasAnswered) this.#fail(messageFromUnknown(error));
      }
      if (hasAnswered && clock.now() - openedAt > LASTING_MS) works();
    };
    await repeatUntilAborted(follow, { initialMs: 50, maxMs: 800, clock, signal });
  }

  async #limitStartup(): Promise<void> {
    const { clock, startupMs, signal } = this.#options;
    await clock.delay(startupMs, signal).catch(() => {}); // the signal is looked at below
    if (signal.aborted || this.isSettled) return;
    this.#fail(
      `did not list its tools within ${startupMs} ms: the first message of WatchProvidedTools has to tell them at once`,
    );
  }

  async #take(message: GetProvidedToolsResponse | WatchProvidedToolsResponse): Promise<void> {
    this.#received += 1;
    const number = this.#received;
    const { tools, faults, summary: unfit } = await this.#options.judge(message.tools, this.ask.provider);
    if (number < this.#taken) return; // what came after it was judged sooner
    this.#taken = number;
    const isAlike = message.sameInAllScopes && this.ask.sources.length === 0;
    this.#settle({ ...this.#offer, tools, faults, unfit, sources: message.sources, failure: "", isAlike });
    if (isAlike) this.#options.onAlike?.(this.ask);
  }

  #fail(reason: string): void {
    const { failure, failedSince } = this.#offer;
    if (failure === reason) return;
    const since = failure === "" ? new Date(this.#options.clock.now()).toISOString() : failedSince;
    this.#settle({ ...this.#offer, failure: reason, ...(since !== undefined && { failedSince: since }) });
  }

  #settle(offer: Offer): void {
    this.#offer = { ...offer, isAwaited: false };
    this.#options.onChange();
  }
}
