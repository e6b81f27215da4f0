import type { NatsConnection } from "@nats-io/transport-node";
import { createChanges } from "../../collections/changes.ts";
import { getOrInsertComputed } from "../../collections/get-or-insert-computed.ts";
import { Failure, messageFromUnknown } from "../../failure/failure.ts";
import { comesWithin } from "../../time/comes-within.ts";
import { retryWhile } from "../../time/retry/retry.ts";
import { unlessAborted } from "../../time/unless-aborted.ts";
import { callPatience } from "./call-patience.ts";
import { isTransient } from "./jetstream-errors.ts";
import { createStorage, type Storage } from "./storage.ts";

/**
 * Whether the connection has a server at the moment. The client drops what is sent while it has none, and lets requests
 * in flight run into their timeouts: who waits for an answer looks here.
 */
export interface Link {
  readonly isUp: boolean;
  /** Whether there is anything behind the server that stores. */
  readonly storage: Storage;
  /** When a lost server was there again, by `performance.now()`: others return a little later, too, and their silence proves nothing. */
  readonly returnedAtMs: number;
  /** Aborts when the server that is connected is lost, at once when there is none. */
  readonly down: AbortSignal;
  /** Resolves when there is a server; rejects with `unavailable` when the connection closes for good. */
  whenUp(signal?: AbortSignal): Promise<void>;
  /** Calls back at each loss of the server; gives a function that ends it. */
  onLoss(listener: () => void): () => void;
  /** Calls back after each return of the server; gives a function that ends it. */
  onReturn(listener: () => void): () => void;
}

const links = new WeakMap<NatsConnection, Link>();

/** That of a connection, which lives as long as the connection does. */
export function linkOf(connection: NatsConnection): Link {
  return getOrInsertComputed(links, connection, openLink);
}

function openLink(connection: NatsConnection): Link {
  let down = new AbortController();
  let returned = Promise.withResolvers<void>();
  returned.resolve();
  const losses = createChanges();
  const returns = createChanges();
  const storage = createStorage(connection);
  const state = { isUp: true, returnedAtMs: Number.NEGATIVE_INFINITY };

  const lose = () => {
    if (!state.isUp) return;
    state.isUp = false;
    returned = Promise.withResolvers<void>();
    returned.promise.catch(() => {}); // whoever waits hears it; nobody has to
    down.abort(lost());
    losses.tell();
  };
  const regain = () => {
    if (state.isUp) return;
    state.isUp = true;
    state.returnedAtMs = performance.now();
    down = new AbortController();
    returned.resolve();
    returns.tell();
  };
  void (async () => {
    for await (const status of connection.status()) {
      if (status.type === "disconnect") lose();
      if (status.type === "reconnect") regain();
    }
  })();
  void connection.closed().then(() => {
    lose();
    returned.reject(new Failure("unavailable", "the connection to NATS is closed", { reason: "BUS_UNAVAILABLE" }));
  });

  return {
    storage,
    get isUp() {
      return state.isUp;
    },
    get returnedAtMs() {
      return state.returnedAtMs;
    },
    get down() {
      return down.signal;
    },
    whenUp: (signal) => unlessAborted(returned.promise, signal),
    onLoss: (listener) => losses.listen(listener)[Symbol.dispose],
    onReturn: (listener) => returns.listen(listener)[Symbol.dispose],
  };
}

class BusLost extends Failure {}

function lost(): Failure {
  return new BusLost("unavailable", "the connection to NATS was lost", { reason: "BUS_UNAVAILABLE" });
}

/** Whether this is the reason of `down`: what was under way when the server was lost. */
export function isLost(error: unknown): boolean {
  return error instanceof BusLost;
}

export interface RetryOnBusOptions {
  signal?: AbortSignal | undefined;
  /** After this it throws `unavailable`, with the last cause. Without limit unless told. */
  timeoutMs?: number | undefined;
  /**
   * How long an attempt may take, or the next one; 1 s unless told, since a cluster that changes its leader lets requests go unanswered.
   * With `Infinity` one takes as long as the server answers it, and what a call may wait decides about another one alone.
   */
  attemptMs?: number | (() => number) | undefined;
  /** What is done, as it should stand in the error: "reading toolbus.run.7". */
  what: string;
}

/**
 * Does something that may be done twice until it succeeds: waits for the server first, gives up an attempt when the server
 * is lost, and repeats what failed for a transient reason. In a call it gives up in time (`callPatience`).
 */
export async function retryOnBus<T>(link: Link, action: () => Promise<T>, options: RetryOnBusOptions): Promise<T> {
  const { patienceMs } = link.storage;
  const { signal, timeoutMs = Number.POSITIVE_INFINITY, attemptMs = 1_000 } = options;
  const limitMs = Math.min(timeoutMs, patienceMs);
  const sinceMs = performance.now();
  const leftMs = () => Math.max(0, limitMs - (performance.now() - sinceMs));
  let cause: unknown;
  const onRetry = (error: unknown) => {
    cause = error;
  };
  // Nearly all are answered at once: what bounds them costs a timer, and no signal of its own.
  const attempt = async () => {
    if (!link.isUp) await answered(leftMs(), link.whenUp(signal));
    const ownMs = typeof attemptMs === "number" ? attemptMs : attemptMs();
    const atMostMs = ownMs === Number.POSITIVE_INFINITY ? ownMs : Math.min(ownMs, leftMs());
    return await answered(atMostMs, unlessAborted(action(), link.down, signal));
  };
  const mayPass = (error: unknown) => isLost(error) || isTransient(error);
  try {
    return await retryWhile(mayPass, attempt, { initialMs: 20, maxMs: 500, patienceMs: limitMs, signal, onRetry });
  } catch (error) {
    signal?.throwIfAborted();
    if (!mayPass(error)) throw error;
    const last = cause ?? (link.isUp ? error : link.down.reason);
    throw patienceMs < timeoutMs ? link.storage.givenUp(options.what, last) : givenUp(options, last);
  } finally {
    if (cause !== undefined) callPatience.spend(sinceMs);
  }
}

/** The promise, or a `TimeoutError` when it does not come in that time. */
async function answered<T>(ms: number, promise: Promise<T>): Promise<T> {
  if (await comesWithin(ms, promise)) return promise;
  throw new DOMException("The operation was aborted due to timeout", "TimeoutError");
}

function givenUp(options: RetryOnBusOptions, cause: unknown): Failure {
  const text = `${options.what}: no answer within ${options.timeoutMs} ms (${messageFromUnknown(cause)})`;
  return new Failure("unavailable", text, { reason: "BUS_UNAVAILABLE", cause });
}
