import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions, Client } from "@connectrpc/connect";
import type {
  McpContentService,
  Prompt,
  Resource,
  ResourceTemplate,
} from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import type { ListToolsResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { scopeOfSession, type Tools } from "./tool-list.ts";

const REFUSALS = /^(failed_precondition|invalid_argument|not_found|permission_denied|unimplemented)$/;

export type Content = Client<typeof McpContentService>;

/** What a server answered, and for how long it may be kept; absent where it does not say. */
interface Listed<T> {
  readonly source: SourceOfSession;
  readonly items: readonly T[];
  readonly ttlMs?: number | undefined;
  /** Whether it did not answer, and may have something. */
  readonly isAway?: boolean;
}

/** A search for one thing in lists of all sources: sources that are not available are asked, too, since they may have it. */
export class Search {
  readonly #late = new AbortController();
  readonly signal = this.#late.signal;
  #timer = setTimeout(() => this.#late.abort(), MAX_SEARCH_MS);
  isHit = false;

  /** One has it. Others are waited for a moment: the first, by name, has what two of them list. */
  hit(): void {
    this.isHit = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#late.abort(), MAX_LATE_MS);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

export interface SourceOfSession {
  readonly sessionId: string;
  readonly source: string;
}

interface Sought<T> {
  readonly search: Search;
  readonly fits: (item: T, source: string) => boolean;
}

interface SourcesOptions {
  readonly tools: Tools;
  readonly content: Content;
  readonly options: CallOptions;
  readonly sessionId: () => Promise<string>;
  /** Whether the client is told how long it may keep an answer, as since 2026-07-28. */
  readonly tellsTtl: boolean;
}

export type AgentSources = ReturnType<typeof createAgentSources>;

/** What the MCP servers of a session's agent have beside tools. */
export function createAgentSources({ tools, tellsTtl, ...asking }: SourcesOptions) {
  const { content, options, sessionId } = asking;
  /** Who refuses has nothing of the kind; who did not answer may do so at once, which is nothing to keep. */
  const nothing = (error: unknown) =>
    REFUSALS.test(failureFromConnectError(error).code) ? { items: [] } : { items: [], ttlMs: 0, isAway: true };

  /** All of a list of each source; one that is no MCP server, has nothing of the kind or may not be asked has nothing. */
  async function each<P extends Page, T>(
    readPage: (asked: { source: SourceOfSession; pageSize: number; pageToken: string }, by: CallOptions) => Promise<P>,
    itemsOf: (page: P) => readonly T[],
    sought?: Sought<T>,
  ): Promise<Listed<T>[]> {
    const id = await sessionId();
    const { sources } = await tools.listTools({ scope: scopeOfSession(id), pageSize: 1 }, options);
    const bounds = sought ? { signal: sought.search.signal } : { timeoutMs: MAX_LIST_MS };
    const asked = sources.filter(({ available }) => available || sought);
    return Promise.all(
      asked.map(async ({ source: name, available }) => {
        const source = { sessionId: id, source: name };
        const by = { ...options, ...bounds, ...(!available && { timeoutMs: MAX_LATE_MS }) };
        const pages = allPages((pageToken) => readPage({ source, pageSize: 1_000, pageToken }, by));
        const listed = { source, ...(await pages.then((read) => keptFrom(read, itemsOf)).catch(nothing)) };
        if (listed.items.some((item) => sought?.fits(item, name))) sought?.search.hit();
        return listed;
      }),
    );
  }

  return {
    ...asking,
    prompts: (sought?: Sought<Prompt>) => each(content.listPrompts, ({ prompts }) => prompts, sought),
    resources: (sought?: Sought<Resource>) => each(content.listResources, ({ resources }) => resources, sought),
    templates: (sought?: Sought<ResourceTemplate>) =>
      each(content.listResourceTemplates, ({ resourceTemplates }) => resourceTemplates, sought),
    /** The strictest of what servers say, for a client that is told of it. */
    ttlOf: (found: readonly Pick<Listed<unknown>, "ttlMs">[], mostMs = LIST_TTL_MS): { ttlMs?: number } =>
      tellsTtl ? { ttlMs: Math.min(mostMs, ...found.flatMap(({ ttlMs }) => ttlMs ?? [])) } : {},
  };
}

/** A server that hangs holds up a list of all servers for so long, */
const MAX_LIST_MS = 10_000;
/** what none of the others has for so long, */
const MAX_SEARCH_MS = 20_000;
/** and what one of them has for so long. One that is down, and may be back, is asked for so long. */
const MAX_LATE_MS = 1_000;

/** What none of the lists has. It may be of a source that is away. */
export function refuseUnlisted(lists: readonly Listed<unknown>[], absent: Error): never {
  const away = lists.find(({ isAway }) => isAway)?.source.source;
  if (away === undefined) throw absent;
  const text = `${absent.message}; ${away}, which may have it, does not say what it has at the moment`;
  return refuse("unavailable", text, { reason: "MCP_SERVER_UNAVAILABLE", metadata: { server: away } });
}

/** How long a client may keep a list, unless a server behind it says less. */
export const LIST_TTL_MS = 5_000;

/** The strictest of what the servers say of their tools. */
export function ttlOfTools({ sources }: Pick<ListToolsResponse, "sources">): { ttlMs: number } {
  const told = sources.filter(({ available }) => available).flatMap(({ toolsTtl }) => toolsTtl ?? []);
  return { ttlMs: Math.min(LIST_TTL_MS, ...told.map(durationMs)) };
}

/** A source's list is kept as long as the strictest of its pages. */
function keptFrom<P extends Page, T>(pages: readonly P[], itemsOf: (page: P) => readonly T[]) {
  const ttls = pages.flatMap(({ ttl }) => (ttl === undefined ? [] : [durationMs(ttl)]));
  return { items: pages.flatMap(itemsOf), ttlMs: ttls.length === 0 ? undefined : Math.min(...ttls) };
}

interface Page {
  readonly nextPageToken: string;
  readonly ttl?: Duration | undefined;
}
