import type { Duration } from "@bufbuild/protobuf/wkt";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import type { ListToolsResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { scopeOfSession, type Tools } from "./tool-list.ts";

const REFUSALS: ReadonlySet<Code> = new Set([
  Code.FailedPrecondition,
  Code.InvalidArgument,
  Code.NotFound,
  Code.PermissionDenied,
  Code.Unimplemented,
]);

export type Content = Client<typeof McpContentService>;

/** What a server answered, and for how long it may be kept; absent where it does not say. */
export interface Kept<T> {
  readonly items: readonly T[];
  readonly ttlMs?: number | undefined;
}

export interface SourceOfSession {
  readonly sessionId: string;
  readonly source: string;
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
  const nothing = (error: unknown) => ({
    items: [],
    ttlMs: REFUSALS.has(ConnectError.from(error).code) ? undefined : 0,
  });

  /** All of a list of each source; one that is no MCP server, has nothing of the kind or may not be asked has nothing. */
  async function each<P extends Page, T>(
    readPage: (asked: AskedPage, options: CallOptions) => Promise<P>,
    itemsOf: (page: P) => readonly T[],
  ): Promise<(Kept<T> & { readonly source: SourceOfSession })[]> {
    const id = await sessionId();
    const { sources } = await tools.listTools({ scope: scopeOfSession(id), pageSize: 1 }, options);
    const answered = sources
      .filter(({ available }) => available)
      .map(async ({ source: name }) => {
        const source = { sessionId: id, source: name };
        const pages = allPages((pageToken) => readPage({ source, pageSize: 1_000, pageToken }, options));
        return { source, ...(await pages.then((read) => keptFrom(read, itemsOf)).catch(nothing)) };
      });
    return Promise.all(answered);
  }

  return {
    ...asking,
    prompts: () => each(content.listPrompts, ({ prompts }) => prompts),
    resources: () => each(content.listResources, ({ resources }) => resources),
    templates: () => each(content.listResourceTemplates, ({ resourceTemplates }) => resourceTemplates),
    /** The strictest of what servers say, for a client that is told of it. */
    ttlOf: (found: readonly Kept<unknown>[], mostMs = LIST_TTL_MS): { ttlMs?: number } =>
      tellsTtl ? { ttlMs: Math.min(mostMs, ...found.flatMap(({ ttlMs }) => ttlMs ?? [])) } : {},
  };
}

/** How long a client may keep a list, unless a server behind it says less. */
export const LIST_TTL_MS = 5_000;

/** The strictest of what the servers say of their tools. */
export function ttlOfTools({ sources }: Pick<ListToolsResponse, "sources">): { ttlMs: number } {
  const told = sources.filter(({ available }) => available).flatMap(({ toolsTtl }) => toolsTtl ?? []);
  return { ttlMs: Math.min(LIST_TTL_MS, ...told.map(durationMs)) };
}

/** A source's list is kept as long as the strictest of its pages. */
function keptFrom<P extends Page, T>(pages: readonly P[], itemsOf: (page: P) => readonly T[]): Kept<T> {
  const ttls = pages.flatMap(({ ttl }) => (ttl === undefined ? [] : [durationMs(ttl)]));
  return { items: pages.flatMap(itemsOf), ttlMs: ttls.length === 0 ? undefined : Math.min(...ttls) };
}

interface AskedPage {
  readonly source: SourceOfSession;
  readonly pageSize: number;
  readonly pageToken: string;
}

interface Page {
  readonly nextPageToken: string;
  readonly ttl?: Duration | undefined;
}
