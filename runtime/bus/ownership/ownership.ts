/**
 * Some things live in one process at a time: a connection, a warm worker, a caller's stream. Who opened one owns its key.
 * Bucket `toolbus_owners` says who owns a key; the owner answers on `toolbus.owner.<kind>.<key>.<revision>`.
 *
 *   nobody ──create──▶ opening ──▶ open ──release──▶ closing ──remove──▶ nobody
 *                         └───────────┴── owner gone ──compare-and-set──▶ opening (elsewhere)
 *
 * OWNER1  Subscribe, flush, create the entry, answer "opening" until open. Before the revision is known the owner listens to
 *     every revision of its key and holds what arrives, so that there is no moment in which an entry stands unanswered.
 * OWNER2  The owner's subject carries the revision of its entry. A takeover changes the revision, so that nobody ever asks a
 *     former owner: when it returns, it answers to nothing.
 * OWNER3  An entry is created, taken over and removed by compare-and-set on its revision only. Of all who try, one wins, and
 *     only the winner opens.
 * OWNER4  Within a process, one claim a key at a time; others who want the key join it. A resource that is closing is closed
 *     before the key is claimed again.
 * OWNER5  An owner is gone when nobody is subscribed to its subject, or when it is silent (`../liveness.ts`).
 * OWNER6  An owner that may have been taken for dead (it slept, or lost the server, or hears "taken") answers nothing and
 *     gives out nothing until it has read its entry again; if the entry is not its own, it closes the resource.
 * OWNER7  What OWNER6 may miss, a verification of all holdings each ten seconds finds. Entries of the dead that nobody asks for are
 *     swept by others of their kind.
 */
import { Failure } from "../../failure/failure.ts";
import { unlessAborted } from "../../time/unless-aborted.ts";
import type { Bus } from "../bus.ts";
import { createClaiming } from "./claiming.ts";
import { createFind } from "./entries/finding.ts";
import { createPing } from "./entries/ping.ts";
import { openSweeping } from "./entries/sweeping.ts";
import type { Holding } from "./holdings/holding.ts";
import { Holdings } from "./holdings/holdings.ts";
import type { Here, OwnershipOptions, There, WaitOptions } from "./options.ts";

export { instanceService } from "./entries/names.ts";
export type * from "./options.ts";

export interface Ownership<R extends AsyncDisposable, A> extends AsyncDisposable {
  /** The owner of the key: this instance, by claiming it if nobody owns it or its owner is gone, or another one. */
  acquire(key: string, argument: A, options?: WaitOptions): Promise<Here<R> | There>;
  /** Closes the resource and then gives the key back. Nothing happens if it is not owned here. */
  release(key: string): Promise<void>;
}

/** Joins in owning things of a kind. Disposing closes and gives back all that is owned here. */
export async function openOwnership<R extends AsyncDisposable, A = void>(
  bus: Bus,
  options: OwnershipOptions<R, A>,
): Promise<Ownership<R, A>> {
  const { kind, onError = () => {} } = options;
  await using stack = new AsyncDisposableStack();
  const ping = createPing(bus, kind, options.silenceMs);
  const holdings = stack.use(new Holdings<R>(bus, options));
  const claiming = createClaiming(bus, holdings, options);
  const find = createFind(bus, kind, ping);
  let isStopping = false;
  stack.use(openSweeping({ bus, kind, ping, isHeld: (key) => holdings.get(key) !== undefined, onError }));
  stack.defer(async () => {
    isStopping = true;
    await claiming.whenIdle();
    await Promise.all(holdings.keys().map((key) => release(key).catch((error: unknown) => onError(error, key))));
  });

  async function acquire(key: string, argument: A, { signal }: WaitOptions = {}): Promise<Here<R> | There> {
    for (;;) {
      signal?.throwIfAborted();
      if (isStopping) throw new Failure("unavailable", "this instance is stopping", { reason: "INSTANCE_STOPPING" });
      await whenClaimed(claiming.running(key), signal);
      await unlessAborted(holdings.whenClosed(key), signal);
      const here = await holdings.here(key, signal);
      if (here) return here;
      if (isInOwnHands(key)) continue;
      const found = await find(key, signal);
      if (isInOwnHands(key)) continue; // another caller of this process was faster
      if (found.kind === "answers") return { kind: "there", instance: found.instance };
      const previous = found.kind === "gone" ? found.entry : undefined;
      if (!isStopping) await whenClaimed(claiming.claim(key, argument, previous), signal);
    }
  }

  /** A failed opening reaches all who waited for it. */
  async function whenClaimed(claim: Promise<Holding<R> | undefined> | undefined, signal?: AbortSignal): Promise<void> {
    if (claim === undefined) return;
    const holding = await unlessAborted(claim, signal);
    if (holding) await unlessAborted(holding.opened, signal);
  }

  const isInOwnHands = (key: string) => holdings.get(key) !== undefined || claiming.running(key) !== undefined;

  async function release(key: string): Promise<void> {
    await claiming.running(key);
    const holding = holdings.get(key);
    if (holding === undefined || holding.state === "closing") return holdings.whenClosed(key);
    await holdings.giveBack(holding);
  }

  const opened = stack.move();
  return {
    acquire,
    release,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
