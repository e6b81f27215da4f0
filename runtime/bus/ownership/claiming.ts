import { getOrInsertComputed } from "../../collections/get-or-insert-computed.ts";
import type { Bus } from "../bus.ts";
import { type OwnerEntry, ownerEntries } from "./entries/entry.ts";
import { ownerSubject, tokenFromKey } from "./entries/names.ts";
import { openAnswering } from "./holdings/answering.ts";
import { type Holding, openHolding } from "./holdings/holding.ts";
import type { Holdings } from "./holdings/holdings.ts";
import type { OwnershipOptions } from "./options.ts";

/** OWNER1, OWNER3 and OWNER4 of `./ownership.ts`. */
export interface Claiming<R, A> {
  /** The claim of this key that is under way. */
  running(key: string): Promise<Holding<R> | undefined> | undefined;
  /** Claims a key that nobody owns, or that the owner of `previous` is gone from; joins a claim under way. Gives nothing when another instance won. */
  claim(key: string, argument: A, previous: OwnerEntry | undefined): Promise<Holding<R> | undefined>;
  whenIdle(): Promise<void>;
}

export function createClaiming<R extends AsyncDisposable, A>(
  bus: Bus,
  holdings: Holdings<R>,
  options: OwnershipOptions<R, A>,
): Claiming<R, A> {
  const { kind, instance } = options;
  const entries = ownerEntries(bus, kind);
  const claims = new Map<string, Promise<Holding<R> | undefined>>();
  const onError = (error: unknown, key: string) => options.onError?.(error, key);

  async function claim(key: string, argument: A, previous: OwnerEntry | undefined): Promise<Holding<R> | undefined> {
    const won = Promise.withResolvers<Holding<R> | undefined>();
    const answering = await openAnswering({
      bus,
      kind,
      key,
      state: async () => {
        const holding = await won.promise;
        return holding && holdings.certainState(holding);
      },
      onTaken: () => void won.promise.then((holding) => holding && holdings.doubt(holding)),
      onError,
    });
    try {
      const token = tokenFromKey(key);
      const revision = previous
        ? await entries.replace(token, { instance }, previous.revision)
        : await entries.create(token, { instance });
      if (revision === undefined) {
        answering.stop();
        won.resolve(undefined);
        return undefined;
      }
      const holding = hold(key, argument, revision, answering.stop);
      won.resolve(holding);
      await answering.settle(revision);
      if (previous) bus.connection.publish(ownerSubject(kind, key, previous.revision), "taken");
      return holding;
    } catch (error) {
      won.resolve(undefined);
      if (holdings.get(key) === undefined) answering.stop();
      throw error;
    }
  }

  function hold(key: string, argument: A, revision: number, stopAnswering: () => void): Holding<R> {
    const holding = openHolding<R>({
      key,
      revision,
      stopAnswering,
      open: async () => options.open(key, argument),
      onOpenFailed: () => void holdings.giveBack(holding).catch((error: unknown) => onError(error, key)),
      onError,
    });
    holdings.add(holding);
    return holding;
  }

  return {
    running: (key) => claims.get(key),
    claim: (key, argument, previous) =>
      getOrInsertComputed(claims, key, () => claim(key, argument, previous).finally(() => claims.delete(key))),
    async whenIdle() {
      await Promise.allSettled(claims.values());
    },
  };
}
