import type { Msg, Subscription } from "@nats-io/transport-node";
import type { Bus } from "../../bus.ts";
import { retryOnBus } from "../../link/link.ts";
import { ownerSubject } from "../entries/names.ts";
import type { OwnerState } from "../entries/ping.ts";

export interface AnsweringOptions {
  bus: Bus;
  kind: string;
  key: string;
  /** How the owner stands; undefined answers nothing. Waits while ownership is in doubt. */
  state: () => Promise<OwnerState | undefined>;
  /** Somebody says that the entry was taken over. */
  onTaken: () => void;
  onError: (error: unknown, key: string) => void;
}

/** Listens before the entry exists (OWNER1), then answers on the entry's own subject only (OWNER2). */
export interface Answering {
  /** The entry has this revision: pings to it are answered, also those that came before. */
  settle(revision: number): Promise<void>;
  stop(): void;
}

export async function openAnswering(options: AnsweringOptions): Promise<Answering> {
  const { bus, kind, key } = options;
  const revisionKnown = Promise.withResolvers<number | undefined>();
  let exact: Subscription | undefined;

  const answer = async (message: Msg) => {
    const revision = await revisionKnown.promise;
    if (revision === undefined || message.subject !== ownerSubject(kind, key, revision)) return;
    if (message.string() === "taken") {
      options.onTaken();
      return;
    }
    const state = await options.state();
    if (state !== undefined) message.respond(state);
  };
  const callback = (_error: Error | null, message: Msg) => {
    answer(message).catch((error: unknown) => options.onError(error, key));
  };

  const every = bus.connection.subscribe(ownerSubject(kind, key, "*"), { callback });
  const stop = () => {
    revisionKnown.resolve(undefined);
    every.unsubscribe();
    exact?.unsubscribe();
  };
  try {
    await flush(bus);
  } catch (error) {
    stop();
    throw error;
  }
  return {
    async settle(revision) {
      exact = bus.connection.subscribe(ownerSubject(kind, key, revision), { callback });
      revisionKnown.resolve(revision);
      await flush(bus);
      every.unsubscribe();
    },
    stop,
  };
}

async function flush(bus: Bus): Promise<void> {
  await retryOnBus(bus.link, () => bus.connection.flush(), { what: "telling the server of a subscription" });
}
