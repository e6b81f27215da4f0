import { createChanges, looksAt } from "#runtime/collections/changes.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";
import type { ServerSubscriptions } from "./server-subscriptions.ts";

/*
 * Who watches which resources of a server, and what it is subscribed to for them.
 *
 * WATCH-1  The server is subscribed to what somebody watches, and for a while after the last one: who comes back misses nothing.
 * WATCH-2  What may have changed is counted. A watcher is told once of all that has come since he was told.
 * WATCH-3  What happened while the server could not tell may have been a change.
 * WATCH-4  A connection may be that of several principals: what one of them alone watches leaves room for the others (SEC-6).
 */

/** First that changes are told from now on, then that there may have been some. */
export type WatchEvent = "watched" | "updated";

interface Watched {
  /** Whose first watcher it was. */
  readonly principal: string;
  watchers: number;
  /** Grows with each change. */
  version: number;
  /** What the last watcher who left was told. */
  toldVersion: number;
  leaving?: NodeJS.Timeout;
}

const LINGER_MS = 5_000;
const MOST_WATCHED = 1_000;
const MOST_OF_PRINCIPAL = 200;
/** A server's stream that has lasted so long was sound. */
const SOUND_MS = 30_000;

export class ResourceWatches {
  readonly #server: string;
  readonly #watched = new Map<string, Watched>();
  /** WATCH-4 */
  readonly #countByPrincipal = new Map<string, number>();
  readonly #changes = createChanges();
  readonly #backoff = createBackoff({ initialMs: 500, maxMs: 60_000 });
  #subscriptions: ServerSubscriptions | undefined;
  #standing: ReadonlySet<string> = new Set();
  #refused: ReadonlyMap<string, string> = new Map();
  #standingSinceMs = 0;
  #isAligning = false;
  #isStale = false;
  #isClosed = false;

  constructor(server: string) {
    this.#server = server;
  }

  /** Another link, over which nothing is told yet; undefined when the last one has ended. */
  linked(subscriptions: ServerSubscriptions | undefined): void {
    this.#subscriptions = subscriptions;
    this.#forget();
    void this.#align();
  }

  /** The server tells no more, though the link goes on. */
  lost(subscriptions: ServerSubscriptions): void {
    if (this.#subscriptions !== subscriptions) return;
    if (performance.now() - this.#standingSinceMs > SOUND_MS) this.#backoff.reset();
    this.#forget();
    setTimeout(() => void this.#align(), this.#backoff.next()).unref();
  }

  /** The server says that the resource has changed. */
  updated(uri: string): void {
    const watched = this.#watched.get(uri);
    if (watched === undefined) return;
    watched.version += 1;
    this.#changes.tell();
  }

  /** Ends all watches. */
  close(): void {
    this.#isClosed = true;
    for (const { leaving } of this.#watched.values()) clearTimeout(leaving);
    this.#changes.tell();
  }

  /** Ends with the connection. Throws what the server has against it. */
  async *watch(uri: string, principal: string, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    const watched = this.#attach(uri, principal);
    let toldVersion = watched.watchers === 1 ? watched.toldVersion : watched.version;
    let isTold = false;
    try {
      for await (const _ of looksAt(this.#changes, signal)) {
        if (this.#isClosed) return;
        const reason = this.#refused.get(uri);
        if (reason !== undefined) refuseWatch(this.#server, uri, reason);
        if (this.#standing.has(uri)) {
          if (!isTold) yield "watched";
          isTold = true;
          const { version } = watched;
          if (version > toldVersion) yield "updated";
          toldVersion = version;
        }
      }
    } finally {
      this.#detach(uri, watched, toldVersion);
    }
  }

  #attach(uri: string, principal: string): Watched {
    const known = this.#watched.get(uri);
    if (known === undefined) this.#requireRoom(principal); // WATCH-4
    const watched = known ?? { principal, watchers: 0, version: 0, toldVersion: 0 };
    clearTimeout(watched.leaving);
    watched.watchers += 1;
    if (known === undefined) {
      this.#watched.set(uri, watched);
      this.#count(principal, 1);
      void this.#align();
    }
    return watched;
  }

  #requireRoom(principal: string): void {
    const own = this.#countByPrincipal.get(principal) ?? 0;
    if (own >= MOST_OF_PRINCIPAL) refuseMore(this.#server, `${MOST_OF_PRINCIPAL} resources of one principal`);
    if (this.#watched.size >= MOST_WATCHED) refuseMore(this.#server, `${MOST_WATCHED} resources`);
  }

  #count(principal: string, change: 1 | -1): void {
    const count = (this.#countByPrincipal.get(principal) ?? 0) + change;
    if (count > 0) this.#countByPrincipal.set(principal, count);
    else this.#countByPrincipal.delete(principal);
  }

  #detach(uri: string, watched: Watched, toldVersion: number): void {
    watched.watchers -= 1;
    if (watched.watchers > 0 || this.#isClosed) return;
    watched.toldVersion = toldVersion;
    const leave = () => {
      this.#watched.delete(uri);
      this.#count(watched.principal, -1);
      void this.#align();
    };
    // what was refused may be asked for anew
    if (this.#refused.has(uri)) leave();
    else watched.leaving = setTimeout(leave, LINGER_MS).unref();
  }

  #forget(): void {
    this.#standing = new Set();
    this.#refused = new Map();
    for (const watched of this.#watched.values()) watched.version += 1; // WATCH-3
  }

  /** Has the server tell of what is watched. */
  async #align(): Promise<void> {
    this.#isStale = true;
    if (this.#isAligning) return;
    this.#isAligning = true;
    while (this.#isStale && this.#subscriptions !== undefined) {
      this.#isStale = false;
      const subscriptions = this.#subscriptions;
      const uris = [...this.#watched.keys()];
      const refused = await subscriptions.tellOf(uris);
      if (subscriptions !== this.#subscriptions) continue; // another link has come, and asked for this again
      this.#refused = refused;
      this.#standing = new Set(uris.filter((uri) => !refused.has(uri)));
      this.#standingSinceMs = performance.now();
      this.#changes.tell();
    }
    this.#isAligning = false;
  }
}

function refuseWatch(source: string, uri: string, reason: string): never {
  return refuse("failed_precondition", `${source} does not tell of ${uri}: ${reason}`, {
    reason: "MCP_REQUEST_REFUSED",
    metadata: { source },
  });
}

function refuseMore(source: string, what: string): never {
  return refuse("resource_exhausted", `${what} are watched at ${source} already`, { reason: "SHARE_EXCEEDED" });
}
