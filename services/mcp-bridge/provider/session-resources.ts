import { type Changes, createChanges } from "#runtime/collections/changes.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { type Ending, openEnding } from "#runtime/time/ending.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { WatchEvent } from "../link/resources/resource-watches.ts";
import type { Asker, Provider } from "./provider.ts";
import type { Resource, ResourceOfSession, SessionSources } from "./session-sources.ts";

/** What sessions are subscribed to, whichever instance was told so. */
export interface Subscriptions {
  of(sessionId: string): readonly Resource[];
  /** Of any. */
  readonly changes: Pick<Changes, "listen">;
  /** Refuses more than there may be. */
  add(resource: ResourceOfSession & { principal: string }, signal: AbortSignal): Promise<void>;
  remove(sessionId: string, uri: string, signal: AbortSignal): Promise<void>;
  /** The session has left its agent. */
  drop(sessionId: string): Promise<void>;
}

export interface SessionResourcesParts {
  readonly sources: SessionSources;
  readonly provider: Pick<Provider, "watchResource">;
  readonly subscriptions: Subscriptions;
}

/** What is to be told since the last time. */
export interface ResourceNews {
  readonly watched: Resource[];
  readonly updated: Resource[];
  readonly unwatched: (Resource & { reason: string })[];
}

interface Feed {
  readonly resource: Resource;
  readonly over: Ending;
  /** Whether it was watched before: what happened in between, nobody knows. */
  wasWatched: boolean;
  isWatched?: boolean;
  isUpdated: boolean;
  reason?: string;
  /** Why it is not watched, as it was told last: told once, however often it is tried again. */
  toldReason?: string;
}

const WAITS = { initialMs: 100, maxMs: 30_000 };

/** Changes of the resources that a session's agent may read. */
export class SessionResources {
  readonly #parts: SessionResourcesParts;

  constructor(parts: SessionResourcesParts) {
    this.#parts = parts;
  }

  /** Has watches tell of it, once the server has agreed. */
  async subscribe(resource: ResourceOfSession, signal: AbortSignal): Promise<void> {
    const { sources, subscriptions } = this.#parts;
    const { scope } = await sources.find(resource.sessionId, resource.source, "read", signal);
    for await (const _watched of this.watchOne(resource, { signal, isPeer: false })) {
      await subscriptions.add({ ...resource, principal: scope.principal ?? "" }, signal);
      return;
    }
    refuse("unavailable", `the connection to ${resource.source} was closed`, { reason: "MCP_SERVER_UNAVAILABLE" });
  }

  /** Ends with the connection. What the agent may read no more ends it as a refusal. */
  async *watchOne({ sessionId, source, uri }: ResourceOfSession, asker: Asker): AsyncGenerator<WatchEvent> {
    const find = () => this.#parts.sources.find(sessionId, source, "read", asker.signal);
    for await (const event of this.#parts.provider.watchResource({ ...(await find()), uri }, asker)) {
      if (event === "updated") await find();
      yield event;
    }
  }

  /** Of these resources, or of those to which the session is subscribed at each time. Ends with the signal. */
  async *watch(sessionId: string, named: readonly Resource[], signal: AbortSignal): AsyncGenerator<ResourceNews> {
    const { subscriptions } = this.#parts;
    const feeds = new Map<string, Feed>();
    const changes = createChanges();
    using ending = openEnding(signal);
    using _ = subscriptions.changes.listen(changes.tell);
    const begin = (resource: Resource) => {
      const feed: Feed = { resource, over: openEnding(ending.signal), wasWatched: false, isUpdated: false };
      void this.#follow(feed, sessionId, changes.tell);
      return feed;
    };
    try {
      for (;;) {
        using change = changes.next();
        follow(feeds, named.length > 0 ? named : subscriptions.of(sessionId), begin);
        const news = newsOf(feeds.values());
        if (news !== undefined) yield news;
        else await unlessAborted(change.happened, signal);
      }
    } finally {
      ending.end();
    }
  }

  /** Never rejects. */
  async #follow(feed: Feed, sessionId: string, tell: () => void): Promise<void> {
    const { signal } = feed.over;
    const once = async (works: () => void) => {
      for await (const event of this.watchOne({ sessionId, ...feed.resource }, { signal, isPeer: false })) {
        works();
        if (event === "updated" || feed.wasWatched) feed.isUpdated = true;
        if (event === "watched") {
          feed.isWatched = feed.wasWatched = true;
          delete feed.toldReason;
        }
        tell();
      }
    };
    const onError = (error: unknown) => {
      const reason = messageFromUnknown(error);
      if (reason === feed.toldReason) return;
      feed.reason = feed.toldReason = reason;
      tell();
    };
    await repeatUntilAborted(once, { ...WAITS, signal, onError });
  }
}

/** Begins what is new, and ends what is wanted no more. */
function follow(feeds: Map<string, Feed>, wanted: readonly Resource[], begin: (resource: Resource) => Feed): void {
  const byKey = new Map(wanted.map(({ source, uri }) => [JSON.stringify([source, uri]), { source, uri }]));
  for (const [key, { over }] of feeds) {
    if (byKey.has(key)) continue;
    over.end();
    feeds.delete(key);
  }
  for (const [key, resource] of byKey) if (!feeds.has(key)) feeds.set(key, begin(resource));
}

function newsOf(feeds: Iterable<Feed>): ResourceNews | undefined {
  const news: ResourceNews = { watched: [], updated: [], unwatched: [] };
  for (const feed of feeds) {
    const { resource, isWatched, isUpdated, reason } = feed;
    if (isWatched) news.watched.push(resource);
    else if (reason !== undefined) news.unwatched.push({ ...resource, reason });
    if (isUpdated) news.updated.push(resource);
    feed.isWatched = feed.isUpdated = false;
    delete feed.reason;
  }
  const { watched, updated, unwatched } = news;
  return watched.length + updated.length + unwatched.length > 0 ? news : undefined;
}
