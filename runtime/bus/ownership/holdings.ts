import { unlessAborted } from "../../time/unless-aborted.ts";
import type { Bus } from "../bus.ts";
import { readEntry, removeEntry } from "./entry.ts";
import type { Holding } from "./holding.ts";
import type { Here, OwnershipOptions } from "./options.ts";
import type { OwnerState } from "./ping.ts";
import { openWakefulness } from "./wakefulness.ts";

/** All that this instance owns, and the doubt about it: O4 and O7 of `../ownership.ts`. */
export interface Holdings<R> extends Disposable {
  get(key: string): Holding<R> | undefined;
  keys(): string[];
  add(holding: Holding<R>): void;
  /** Whether nothing has happened that lets others take this owner for dead. */
  isCertain(holding: Holding<R>): boolean;
  /** Has the entry read again; what turns out to be lost is closed. */
  doubt(holding: Holding<R>): void;
  /** How the holding stands, after any doubt is settled; undefined when it was lost. */
  certainState(holding: Holding<R>): Promise<OwnerState | undefined>;
  /** The resource, opened and in no doubt; undefined when there is none, or when it turned out to be lost. */
  here(key: string, signal?: AbortSignal): Promise<Here<R> | undefined>;
  /** Closes the resource, then removes the entry. */
  giveBack(holding: Holding<R>): Promise<void>;
  /** Resolves when nothing of the key is being closed. */
  whenClosed(key: string): Promise<void>;
}

const verifyAllMs = 10_000;

export function openHoldings<R extends AsyncDisposable, A>(bus: Bus, options: OwnershipOptions<R, A>): Holdings<R> {
  const { kind, silenceMs = 1_000 } = options;
  const held = new Map<string, Holding<R>>();
  const verifications = new Map<Holding<R>, Promise<boolean>>();
  const closings = new Map<string, Promise<void>>();
  using stack = new DisposableStack();

  const isHeld = (holding: Holding<R>) => held.get(holding.key) === holding;

  function verify(holding: Holding<R>): Promise<boolean> {
    const running = verifications.get(holding);
    if (running) return running;
    const verifying = readEntry(bus, { kind, key: holding.key }).then((entry) => {
      if (entry?.revision === holding.revision) return isHeld(holding);
      if (isHeld(holding) && holding.state !== "closing") lose(holding);
      return false;
    });
    const tracked = verifying.finally(() => verifications.delete(holding));
    verifications.set(holding, tracked);
    return tracked;
  }

  function doubt(holding: Holding<R>): void {
    if (holding.state === "closing") return;
    verify(holding).catch((error: unknown) => options.onError?.(error, holding.key)); // the bus was closed for good
  }
  const doubtAll = () => held.forEach(doubt);

  function forget(holding: Holding<R>): void {
    holding.stopAnswering();
    if (isHeld(holding)) held.delete(holding.key);
  }

  function lose(holding: Holding<R>): void {
    forget(holding);
    options.onLost?.(holding.key);
    void trackClosing(holding.key, holding.close());
  }

  async function closeAndRemove(holding: Holding<R>): Promise<void> {
    await holding.close();
    try {
      await removeEntry(bus, { kind, key: holding.key }, holding.revision); // refused if it was taken over meanwhile
    } finally {
      forget(holding);
    }
  }

  function trackClosing(key: string, closing: Promise<void>): Promise<void> {
    const after = (closings.get(key) ?? Promise.resolve()).catch(() => {}); // whoever closed that one was told
    const tracked = Promise.all([closing, after]).then(() => {});
    closings.set(key, tracked);
    const clear = () => {
      if (closings.get(key) === tracked) closings.delete(key);
    };
    tracked.then(clear, clear);
    return tracked;
  }

  const wakefulness = stack.use(openWakefulness({ sleepMs: silenceMs / 2, onSleep: doubtAll }));
  stack.defer(bus.link.onLoss(doubtAll)); // reading waits for the server
  stack.adopt(setInterval(doubtAll, verifyAllMs).unref(), clearInterval);

  const isCertain = (holding: Holding<R>) =>
    isHeld(holding) && !verifications.has(holding) && wakefulness.isAwake && bus.link.isUp;

  const opened = stack.move();
  return {
    get: (key) => held.get(key),
    keys: () => [...held.keys()],
    add: (holding) => void held.set(holding.key, holding),
    isCertain,
    doubt,
    async certainState(holding) {
      if (!isCertain(holding) && !(await verify(holding))) return undefined;
      return holding.state;
    },
    async here(key, signal) {
      const holding = held.get(key);
      if (holding === undefined || holding.state === "closing") return undefined;
      if (!isCertain(holding) && !(await unlessAborted(verify(holding), signal))) return undefined;
      const resource = await unlessAborted(holding.opened, signal);
      return isHeld(holding) ? { kind: "here", resource, revision: holding.revision } : undefined;
    },
    giveBack: (holding) => trackClosing(holding.key, closeAndRemove(holding)),
    whenClosed: async (key) => closings.get(key),
    [Symbol.dispose]: () => opened.dispose(),
  };
}
