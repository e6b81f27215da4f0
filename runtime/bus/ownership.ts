/**
 * Some things live in one process at a time: a connection, a warm worker, a caller's stream. Who opened one owns its key.
 * Bucket `toolbus_owners` says who owns a key; the owner answers on `toolbus.owner.<kind>.<key>.<revision>`.
 *
 *   nobody ──create──▶ opening ──▶ open ──release──▶ closing ──remove──▶ nobody
 *                         └───────────┴── owner gone ──compare-and-set──▶ opening (elsewhere)
 *
 * O1  Subscribe, flush, create the entry, answer "opening" until open. Before the revision is known the owner listens to
 *     every revision of its key and holds what arrives, so that there is no moment in which an entry stands unanswered.
 * O2  The owner's subject carries the revision of its entry. A takeover changes the revision, so that nobody ever asks a
 *     former owner: when it returns, it answers to nothing.
 * O3  An entry is created, taken over and removed by compare-and-set on its revision only. Of all who try, one wins, and
 *     only the winner opens.
 * O4  Within a process, one claim a key at a time; others who want the key join it. A resource that is closing is closed
 *     before the key is claimed again.
 * O5  An owner is gone when nobody is subscribed to its subject, or when it is silent for 1 s: a frozen process keeps its
 *     subscriptions. Silence counts only if the server itself answers.
 * O6  For 1 s after the own return to the server, and in a cluster for 1 s after the entry was written, a lack of
 *     subscribers proves nothing: owners may still be on their way back.
 * O7  An owner that may have been taken for dead (it slept, or lost the server, or hears "taken") answers nothing and
 *     gives out nothing until it has read its entry again; if the entry is not its own, it closes the resource.
 * O8  What O7 may miss, a verification of all holdings each ten seconds finds. Entries of the dead that nobody asks for are
 *     swept by others of their kind.
 */
import { Failure } from "../failure/failure.ts";
import { delay } from "../time/delay.ts";
import type { Bus } from "./bus.ts";
import { unlessAborted } from "./link.ts";
import { type OwnerEntry, readEntry, removeEntry, writeEntry } from "./ownership/entry.ts";
import { type Holding, openAnswering } from "./ownership/holding.ts";
import { ownerSubject } from "./ownership/names.ts";
import { type OwnerState, openPinging } from "./ownership/ping.ts";
import { openSweeping } from "./ownership/sweeping.ts";
import { openWakefulness } from "./ownership/wakefulness.ts";

export { instanceService } from "./ownership/names.ts";

export interface OpenContext {
  /** Aborts when the key was lost or is to be released. */
  readonly signal: AbortSignal;
  /** Grows with each owner of the key: a fence for whatever the resource writes. */
  readonly revision: number;
}

export interface OwnershipOptions<R extends AsyncDisposable, A> {
  /** What is owned, as one token: "connection", "worker". */
  kind: string;
  /** This process among those of its service. */
  instance: string;
  /** Opens the resource after the key was won. Its failure gives the key back and reaches all who wait for it. */
  open: (key: string, argument: A, context: OpenContext) => Promise<R>;
  /** The key was taken over, and its resource is being closed. */
  onLost?: ((key: string) => void) | undefined;
  /** What failed with nobody waiting for it: a resource that would not close, a sweep. */
  onError?: ((error: unknown, key: string | undefined) => void) | undefined;
  silenceMs?: number | undefined;
}

export type Here<R> = { kind: "here"; resource: R; revision: number };
/** Forward to `instanceService(service, instance)`; there, ask `acquire`, which joins an opening. */
export type There = { kind: "there"; instance: string };
export type Location<R> = Here<R> | There | { kind: "nobody" };

export interface WaitOptions {
  /** Ends this waiting; an opening that others wait for goes on. */
  signal?: AbortSignal | undefined;
}

export interface Ownership<R extends AsyncDisposable, A> extends AsyncDisposable {
  readonly instance: string;
  /** The resource, if it is open here and ownership is in no doubt. */
  owned(key: string): R | undefined;
  /** The keys that this instance owns, open or on their way. */
  keys(): string[];
  /** Who owns the key at the moment, without claiming it. */
  locate(key: string, options?: WaitOptions): Promise<Location<R>>;
  /** The owner of the key: this instance, by claiming it if nobody owns it or its owner is gone, or another one. */
  acquire(key: string, argument: A, options?: WaitOptions): Promise<Here<R> | There>;
  /** Closes the resource and then gives the key back. Nothing happens if it is not owned here. */
  release(key: string): Promise<void>;
}

const verifyAllMs = 10_000;

export async function openOwnership<R extends AsyncDisposable, A>(
  bus: Bus,
  options: OwnershipOptions<R, A>,
): Promise<Ownership<R, A>> {
  const { kind, instance, silenceMs = 1_000 } = options;
  const holdings = new Map<string, Holding<R>>();
  const claims = new Map<string, Promise<void>>();
  const closings = new Map<string, Promise<void>>();
  const locations = new Map<string, OwnerEntry>();
  let isClosing = false;

  const stack = new AsyncDisposableStack();
  const pinging = stack.use(openPinging(bus, kind, silenceMs));
  const report = (error: unknown, key?: string) => options.onError?.(error, key);

  // ── O7: doubt and verification ──

  const verify = (holding: Holding<R>): Promise<boolean> => {
    holding.verifying ??= verifyOnce(holding).finally(() => {
      holding.verifying = undefined;
    });
    return holding.verifying;
  };
  const verifyOnce = async (holding: Holding<R>): Promise<boolean> => {
    const entry = await readEntry(bus, { kind, key: holding.key });
    if (entry?.revision === holding.revision) return true;
    lose(holding);
    return false;
  };
  const doubt = (holding: Holding<R>) => {
    if (holding.phase.kind === "closing") return;
    verify(holding).catch((error: unknown) => report(error, holding.key)); // the bus is closed: nothing can be asked
  };
  const doubtAll = () => {
    for (const holding of holdings.values()) doubt(holding);
  };
  const wakefulness = stack.use(openWakefulness({ sleepMs: silenceMs / 2, onSleep: doubtAll }));
  const isCertain = (holding: Holding<R>) =>
    holding.verifying === undefined && wakefulness.isAwake && bus.link.isUp && holdings.get(holding.key) === holding;

  // ── Closing ──

  const closeResource = async (holding: Holding<R>): Promise<void> => {
    const { phase } = holding;
    holding.lost.abort(
      new Failure("aborted", `${kind} ${holding.key} is no longer owned here`, { reason: "NOT_OWNER" }),
    );
    if (phase.kind === "closing") return phase.closed;
    const close = async () => {
      try {
        const resource = phase.kind === "open" ? phase.resource : await phase.opened.catch(() => undefined); // its waiters were told
        await resource?.[Symbol.asyncDispose]();
      } catch (error) {
        report(error, holding.key);
      }
    };
    const closed = close();
    holding.phase = { kind: "closing", closed };
    return closed;
  };
  const forget = (holding: Holding<R>) => {
    holding.stopAnswering();
    if (holdings.get(holding.key) === holding) holdings.delete(holding.key);
  };
  const trackClosing = (key: string, closed: Promise<void>): Promise<void> => {
    const tracked = closed.finally(() => {
      if (closings.get(key) === tracked) closings.delete(key);
    });
    closings.set(key, tracked);
    return tracked;
  };
  const lose = (holding: Holding<R>) => {
    if (holdings.get(holding.key) !== holding) return;
    forget(holding);
    options.onLost?.(holding.key);
    void trackClosing(holding.key, closeResource(holding));
  };
  const giveBack = async (holding: Holding<R>) => {
    await closeResource(holding);
    try {
      await removeEntry(bus, { kind, key: holding.key }, holding.revision); // refused when it was taken over meanwhile
    } finally {
      forget(holding);
    }
  };

  // ── Claiming ──

  const stateOf = async (holding: Holding<R>): Promise<OwnerState | undefined> => {
    if (holding.phase.kind === "closing") return "closing";
    if (!isCertain(holding) && !(await verify(holding))) return undefined;
    return holding.phase.kind;
  };

  /** O1 and O3. Gives nothing when somebody else won. */
  const claim = async (key: string, argument: A, previous: OwnerEntry | undefined): Promise<void> => {
    const ready = Promise.withResolvers<Holding<R> | undefined>();
    const answering = await openAnswering({
      bus,
      kind,
      key,
      state: async () => {
        const holding = await ready.promise;
        return holding && stateOf(holding);
      },
      onTaken: () => void ready.promise.then((holding) => holding && doubt(holding)),
    });
    try {
      const revision = await writeEntry(bus, { kind, key }, instance, previous?.revision);
      if (revision === undefined) {
        ready.resolve(undefined);
        answering.stop();
        return;
      }
      const holding = hold(key, revision, argument, () => answering.stop());
      ready.resolve(holding);
      await answering.settle(revision);
      if (previous) bus.connection.publish(ownerSubject(kind, key, previous.revision), "taken");
    } catch (error) {
      ready.resolve(undefined);
      answering.stop();
      throw error;
    }
  };

  const hold = (key: string, revision: number, argument: A, stopAnswering: () => void): Holding<R> => {
    const lost = new AbortController();
    const opened = options.open(key, argument, { signal: lost.signal, revision });
    const holding: Holding<R> = {
      key,
      revision,
      lost,
      phase: { kind: "opening", opened },
      verifying: undefined,
      stopAnswering,
    };
    holdings.set(key, holding);
    opened.then(
      (resource) => {
        if (holding.phase.kind === "opening") holding.phase = { kind: "open", resource };
      },
      () => {
        if (holding.phase.kind === "opening") void trackClosing(key, giveBack(holding)).catch(report); // its waiters are told
      },
    );
    return holding;
  };

  /** O4. */
  const claimOnce = (key: string, argument: A, previous: OwnerEntry | undefined): Promise<void> => {
    const running = claims.get(key);
    if (running) return running;
    const claiming = claim(key, argument, previous).finally(() => claims.delete(key));
    claims.set(key, claiming);
    return claiming;
  };

  // ── Asking ──

  /** The resource here; undefined when there is none, or when it turned out to be lost. */
  const hereOf = async (key: string, signal?: AbortSignal): Promise<Here<R> | undefined> => {
    const holding = holdings.get(key);
    if (holding === undefined || holding.phase.kind === "closing") return undefined;
    if (!isCertain(holding) && !(await unlessAborted(verify(holding), signal))) return undefined;
    const { phase } = holding;
    if (phase.kind === "closing") return undefined;
    const resource = phase.kind === "open" ? phase.resource : await unlessAborted(phase.opened, signal);
    return holdings.get(key) === holding ? { kind: "here", resource, revision: holding.revision } : undefined;
  };

  const whenNotClosing = async (key: string, signal?: AbortSignal) => {
    const holding = holdings.get(key);
    if (holding?.phase.kind === "closing") await unlessAborted(holding.phase.closed, signal);
    const closing = closings.get(key);
    if (closing) await unlessAborted(closing, signal).catch(() => signal?.throwIfAborted()); // reported by whoever closes
  };

  /** The entry of a key whose owner answers, or the one to take over, or nothing. */
  const findOwner = async (key: string, signal?: AbortSignal): Promise<{ there?: There; gone?: OwnerEntry }> => {
    for (;;) {
      const known = locations.get(key);
      const entry = known ?? (await readEntry(bus, { kind, key }, signal));
      if (entry === undefined) return {};
      const state = await pinging.ping(key, entry, signal);
      if (state === "open" || state === "opening") {
        remember(locations, key, entry);
        return { there: { kind: "there", instance: entry.instance } };
      }
      locations.delete(key);
      if (state === "gone" && known === undefined) return { gone: entry };
      if (state === "closing") await delay(10, signal);
    }
  };

  const acquire = async (key: string, argument: A, { signal }: WaitOptions = {}): Promise<Here<R> | There> => {
    for (;;) {
      signal?.throwIfAborted();
      if (isClosing) throw new Failure("unavailable", "this instance is stopping", { reason: "STOPPING" });
      await whenNotClosing(key, signal);
      const here = await hereOf(key, signal);
      if (here) return here;
      const running = claims.get(key);
      if (running) await unlessAborted(running, signal);
      else {
        const { there, gone } = await findOwner(key, signal);
        const isOwn = there?.instance === instance && (holdings.has(key) || claims.has(key));
        if (there && !isOwn) return there;
        if (!there && !holdings.has(key) && !isClosing) await unlessAborted(claimOnce(key, argument, gone), signal);
      }
    }
  };

  const locate = async (key: string, { signal }: WaitOptions = {}): Promise<Location<R>> => {
    const here = await hereOf(key, signal);
    if (here) return here;
    const { there } = await findOwner(key, signal);
    return there ?? { kind: "nobody" };
  };

  const release = async (key: string): Promise<void> => {
    await claims.get(key);
    const holding = holdings.get(key);
    if (holding === undefined) return closings.get(key);
    if (holding.phase.kind === "closing") return closings.get(key) ?? holding.phase.closed;
    await trackClosing(key, giveBack(holding));
  };

  // ── Opening and closing the whole ──

  const onDown = () => {
    for (const holding of holdings.values()) doubt(holding); // persists until the server is back
  };
  stack.defer(watchLosses(bus, onDown));
  const verifying = setInterval(doubtAll, verifyAllMs).unref();
  stack.defer(() => clearInterval(verifying));
  stack.use(openSweeping({ bus, kind, pinging, isHeld: (key) => holdings.has(key), onError: report }));
  stack.defer(async () => {
    isClosing = true;
    await Promise.allSettled(claims.values());
    await Promise.all([...holdings.keys()].map((key) => release(key).catch((error: unknown) => report(error, key))));
    await Promise.allSettled(closings.values());
  });

  return {
    instance,
    owned(key) {
      const holding = holdings.get(key);
      return holding?.phase.kind === "open" && isCertain(holding) ? holding.phase.resource : undefined;
    },
    keys: () => [...holdings.keys()],
    locate,
    acquire,
    release,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const rememberedLocations = 10_000;

function remember(locations: Map<string, OwnerEntry>, key: string, entry: OwnerEntry): void {
  locations.delete(key);
  locations.set(key, entry);
  const [oldest] = locations.keys();
  if (locations.size > rememberedLocations && oldest !== undefined) locations.delete(oldest);
}

/** Calls back at each loss of the server. */
function watchLosses(bus: Bus, onLoss: () => void): () => void {
  let signal = bus.link.down;
  signal.addEventListener("abort", onLoss);
  const end = bus.link.onReturn(() => {
    signal = bus.link.down;
    signal.addEventListener("abort", onLoss);
  });
  return () => {
    end();
    signal.removeEventListener("abort", onLoss);
  };
}
