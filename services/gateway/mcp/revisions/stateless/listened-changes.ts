import type { ServerEvent, ServerEventBus } from "@modelcontextprotocol/server";
import { createEventQueue, type EventQueue } from "#runtime/collections/feeds/event-queue.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { followResources } from "../../agent/resources/resource-changes.ts";
import { watchedFrom } from "../../agent/resources/resources.ts";
import { createAgentSources } from "../../agent/sources.ts";
import { followTools } from "../../agent/tool-changes.ts";
import { scopeOfSession } from "../../agent/tool-list.ts";
import { type McpExchange, type McpParts, serverParts } from "../mcp-exchange.ts";

/** What the one stream of a request that listens is told (2026-07-28). */
export interface Changes {
  readonly bus: ServerEventBus;
  /** The resources that it is told of: those that there are, and whose servers tell of them. */
  readonly uris: readonly string[];
  /** For a request that got no stream. */
  readonly leave: () => void;
}

export const NO_CHANGES: Changes = { bus: { publish() {}, subscribe: () => () => {} }, uris: [], leave() {} };

const MOST_RESOURCES = 100;
/** A server that is slower tells later, if it does. */
const SETTLED_MS = 10_000;

/** Another list than before it began, and resources that may have changed. It ends when this process stops. */
export async function openChanges(parts: McpParts, exchange: McpExchange, end: () => void): Promise<Changes> {
  const { agent, caller, request, body } = exchange;
  const ending = openEnding(request.signal, parts.stopping);
  const { signal } = ending;
  const own = serverParts(parts, exchange, () => parts.sessions.standing(agent, caller));
  const scope = scopeOfSession(await own.sessionId());
  const lists = followTools({ ...own, scope, signal });
  await lists.next();
  const told = createEventQueue<ServerEvent>({ limit: MOST_RESOURCES }); // of each resource one at most, until the stream begins
  const uris = await listenTo(resourcesIn(body), { own, signal, told });
  async function follow(): Promise<void> {
    using _ = ending;
    for await (const _list of lists) told.push({ kind: "tools_list_changed" });
  }
  async function pass(listener: (event: ServerEvent) => void): Promise<void> {
    for await (const event of told) listener(event);
  }
  const leave = () => ending.end();
  const subscribe: ServerEventBus["subscribe"] = (listener) => {
    void pass(listener);
    void follow().finally(end);
    return leave;
  };
  return { bus: { publish() {}, subscribe }, uris, leave };
}

interface Listening {
  readonly own: ReturnType<typeof serverParts>;
  readonly signal: AbortSignal;
  readonly told: Pick<EventQueue<ServerEvent>, "push" | "remove">;
}

/** Resolves with those that are told of from now on. */
async function listenTo(uris: readonly string[], { own, signal, told }: Listening): Promise<string[]> {
  if (uris.length === 0) return [];
  const sources = createAgentSources({ ...own, tellsTtl: true });
  const named = await watchedFrom(uris, sources);
  const waited = new Map(named.map(({ uri }) => [uri, Promise.withResolvers<void>()]));
  const refused = new Set<string>();
  const onSettled = (uri: string, isWatched: boolean) => {
    if (!isWatched) refused.add(uri);
    waited.get(uri)?.resolve();
  };
  const onUpdated = (uri: string) => {
    told.remove((event) => event.kind === "resource_updated" && event.uri === uri);
    told.push({ kind: "resource_updated", uri });
  };
  if (named.length > 0) void followResources({ sources, resources: named, signal, onUpdated, onSettled });
  await comesWithin(SETTLED_MS, Promise.all([...waited.values()].map(({ promise }) => promise)));
  return named.map(({ uri }) => uri).filter((uri) => !refused.has(uri));
}

function resourcesIn(body: unknown): string[] {
  const asked = notificationsIn(body).resourceSubscriptions;
  const uris = Array.isArray(asked) ? asked.filter((uri) => typeof uri === "string") : [];
  if (uris.length > MOST_RESOURCES)
    refuse("invalid_argument", `a stream tells of ${MOST_RESOURCES} resources at most`, { reason: "INVALID_REQUEST" });
  return [...new Set(uris)];
}

const notificationsIn = (body: unknown) => fieldsOf(fieldsOf(fieldsOf(body).params).notifications);

/** The request, as far as it is granted: the answer says so. */
export function withResources(body: unknown, uris: readonly string[]): unknown {
  const { resourceSubscriptions, ...others } = notificationsIn(body);
  if (!isObject(body) || !isObject(body.params) || !Array.isArray(resourceSubscriptions)) return body;
  const granted = { ...others, ...(uris.length > 0 && { resourceSubscriptions: uris }) };
  return { ...body, params: { ...body.params, notifications: granted } };
}
