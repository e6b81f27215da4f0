import { comesWithin } from "#runtime/time/comes-within.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import type { OwnSources } from "../../catalogue/checks/check-agent.ts";
import type { ProviderClient } from "./provider-client.ts";

/** A provider that starts beside the router is waited for so long before what it might offer is called missing. */
const START_MS = 15_000;

/** The sources that a provider offers by itself: an agent that uses one of them is told nothing wrong (ORCH-5). */
export class OwnOffers implements OwnSources, Disposable {
  readonly #closing = new AbortController();
  readonly #heard = Promise.withResolvers<void>();
  #names: ReadonlySet<string> = new Set();

  names(): ReadonlySet<string> {
    return this.#names;
  }

  /** Resolves when the provider has been heard, or takes too long. */
  async known(): Promise<void> {
    await comesWithin(START_MS, this.#heard.promise);
  }

  /** Follows the provider until this is disposed. */
  follow(provider: Pick<ProviderClient, "watchTools"> | undefined): void {
    const { signal } = this.#closing;
    const action = async (works: () => void) => {
      for await (const { sources } of provider?.watchTools({ sources: [] }, { signal }) ?? []) {
        works();
        this.#names = new Set(sources.map(({ source }) => source));
        this.#heard.resolve();
      }
    };
    void repeatUntilAborted(action, { initialMs: 100, maxMs: 5_000, signal });
  }

  [Symbol.dispose](): void {
    this.#closing.abort(new Error("the router is closed"));
  }
}
