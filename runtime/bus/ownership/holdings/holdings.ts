import { getOrInsertComputed } from "../../../collections/get-or-insert-computed.ts";
import { unlessAborted } from "../../../time/unless-aborted.ts";
import type { Bus } from "../../bus.ts";
import { callPatience } from "../../link/call-patience.ts";
import { ownerEntries } from "../entries/entry.ts";
import { tokenFromKey } from "../entries/names.ts";
import type { OwnerState } from "../entries/ping.ts";
import type { Here, OwnershipOptions } from "../options.ts";
import { Closings } from "./closings.ts";
import type { Holding } from "./holding.ts";
import { openWakefulness } from "./wakefulness.ts";

const verifyAllMs = 10_000;

type HoldingsOptions = Pick<OwnershipOptions<AsyncDisposable, never>, "kind" | "silenceMs" | "onError">;

/** All that this instance owns, and the doubt about it: OWNER4 and OWNER6 of `../ownership.ts`. */
export class Holdings<R extends AsyncDisposable> implements Disposable {
  readonly #bus: Bus;
  readonly #options: HoldingsOptions;
  readonly #entries;
  readonly #held = new Map<string, Holding<R>>();
  readonly #verifications = new Map<Holding<R>, Promise<boolean>>();
  readonly #closings = new Closings();
  readonly #watching = new DisposableStack();
  readonly #wakefulness;

  constructor(bus: Bus, options: HoldingsOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#entries = ownerEntries(bus, options.kind);
    const doubtAll = () => {
      for (const holding of this.#held.values()) this.doubt(holding);
    };
    const sleepMs = (options.silenceMs ?? 1_000) / 2;
    this.#wakefulness = this.#watching.use(openWakefulness({ sleepMs, onSleep: doubtAll }));
    this.#watching.defer(bus.link.onLoss(doubtAll)); // reading waits for the server
    this.#watching.adopt(setInterval(doubtAll, verifyAllMs).unref(), clearInterval);
  }

  get(key: string): Holding<R> | undefined {
    return this.#held.get(key);
  }

  keys(): string[] {
    return [...this.#held.keys()];
  }

  add(holding: Holding<R>): void {
    this.#held.set(holding.key, holding);
  }

  /** Whether nothing has happened that lets others take this owner for dead. */
  #isCertain(holding: Holding<R>): boolean {
    const isInDoubt = this.#verifications.has(holding) || !this.#wakefulness.isAwake || !this.#bus.link.isUp;
    return this.#isHeld(holding) && !isInDoubt;
  }

  /** Has the entry read again; what turns out to be lost is closed. */
  doubt(holding: Holding<R>): void {
    if (holding.state === "closing") return;
    this.#verify(holding).catch((error: unknown) => this.#options.onError?.(error, holding.key)); // the bus was closed for good
  }

  /** How the holding stands, after any doubt is settled; undefined when it was lost. */
  async certainState(holding: Holding<R>): Promise<OwnerState | undefined> {
    if (!this.#isCertain(holding) && !(await this.#verify(holding))) return undefined;
    return holding.state;
  }

  /** The resource, opened and in no doubt; undefined when there is none, or when it turned out to be lost. */
  async here(key: string, signal?: AbortSignal): Promise<Here<R> | undefined> {
    const holding = this.#held.get(key);
    if (holding === undefined || holding.state === "closing") return undefined;
    if (!this.#isCertain(holding)) {
      // it is read as long as it takes, and a call waits for that no longer than for anything else of the bus
      const isOurs = await callPatience.limit(`reading who owns ${key}`, unlessAborted(this.#verify(holding), signal));
      if (!isOurs) return undefined;
    }
    const resource = await unlessAborted(holding.opened, signal);
    return this.#isHeld(holding) ? { kind: "here", resource } : undefined;
  }

  /** Closes the resource, then removes the entry. */
  giveBack(holding: Holding<R>): Promise<void> {
    return this.#closings.add(holding.key, this.#closeAndRemove(holding));
  }

  /** Resolves when nothing of the key is being closed. */
  whenClosed(key: string): Promise<void> {
    return this.#closings.ended(key);
  }

  [Symbol.dispose](): void {
    this.#watching.dispose();
  }

  #isHeld(holding: Holding<R>): boolean {
    return this.#held.get(holding.key) === holding;
  }

  /** Reads the entry, once for all who doubt at the same time; false when the holding is lost. */
  #verify(holding: Holding<R>): Promise<boolean> {
    return getOrInsertComputed(this.#verifications, holding, () =>
      callPatience.exit(() => this.#isOwn(holding)).finally(() => this.#verifications.delete(holding)),
    );
  }

  async #isOwn(holding: Holding<R>): Promise<boolean> {
    const entry = await this.#entries.read(tokenFromKey(holding.key));
    if (entry?.revision === holding.revision) return this.#isHeld(holding);
    if (this.#isHeld(holding) && holding.state !== "closing") this.#lose(holding);
    return false;
  }

  #lose(holding: Holding<R>): void {
    this.#forget(holding);
    void this.#closings.add(holding.key, holding.close());
  }

  async #closeAndRemove(holding: Holding<R>): Promise<void> {
    await holding.close();
    try {
      await this.#entries.remove(tokenFromKey(holding.key), holding.revision); // refused if it was taken over meanwhile
    } finally {
      this.#forget(holding);
    }
  }

  #forget(holding: Holding<R>): void {
    holding.stopAnswering();
    if (this.#isHeld(holding)) this.#held.delete(holding.key);
  }
}
