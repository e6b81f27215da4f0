import type { Duration } from "@bufbuild/protobuf/wkt";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import type { ListToolsResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import type { Answering } from "../http/refusals.ts";
import { scopeOfSession, type Tools } from "./tool-list.ts";

const REFUSALS: ReadonlySet<Code> = new Set([
  Code.FailedPrecondition,
  Code.InvalidArgument,
  Code.NotFound,
  Code.PermissionDenied,
  Code.Unimplemented,
]);

export type Content = Client<typeof McpContentService>;

/** What the MCP servers of a session's agent have beside tools. */
export interface AgentSources {
  readonly content: Content;
  readonly options: CallOptions;
  readonly answering: Answering;
  readonly sessionId: () => Promise<string>;
  /** The sources that can be used, by name. */
  readonly names: () => Promise<string[]>;
  /** Of each source what it answers; one that is no MCP server, has nothing of the kind or may not be asked has nothing. */
  each<T>(ask: (source: SourceOfSession) => Promise<Kept<T[]>>): Promise<Found<T>[]>;
  /** The strictest of what servers say, for a client that is told of it. */
  ttlOf(found: readonly Kept<unknown>[], mostMs?: number): { ttlMs?: number };
}

/** What a server answered, and for how long it may be kept; absent where it does not say. */
export interface Kept<T> {
  readonly items: T;
  readonly ttlMs?: number | undefined;
}

export interface Found<T> extends Kept<T[]> {
  readonly source: SourceOfSession;
}

export interface SourceOfSession {
  readonly sessionId: string;
  readonly source: string;
}

interface SourcesOptions extends Pick<AgentSources, "content" | "options" | "answering" | "sessionId"> {
  readonly tools: Tools;
  /** Whether the client is told how long it may keep an answer, as since 2026-07-28. */
  readonly tellsTtl: boolean;
}

export function createAgentSources({ tellsTtl, sessionId, ...asking }: SourcesOptions): AgentSources {
  const { tools, content, options, answering } = asking;
  /** Who refuses has nothing of the kind; who did not answer may do so at once, which is nothing to keep. */
  const nothing = (error: unknown) => ({
    items: [],
    ttlMs: REFUSALS.has(ConnectError.from(error).code) ? undefined : 0,
  });

  async function names(): Promise<string[]> {
    const { sources } = await tools.listTools({ scope: scopeOfSession(await sessionId()), pageSize: 1 }, options);
    return sources.filter(({ available }) => available).map(({ source }) => source);
  }
  return {
    content,
    options,
    answering,
    sessionId,
    names,
    async each(ask) {
      const id = await sessionId();
      const answered = (await names()).map(async (name) => {
        const source = { sessionId: id, source: name };
        return { source, ...(await ask(source).catch(nothing)) };
      });
      return Promise.all(answered);
    },
    ttlOf: (found, mostMs = LIST_TTL_MS) =>
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

/** All pages of a source's list, kept as long as the first of them. */
export async function keptPages<P extends Page, T>(
  readPage: (pageToken: string) => Promise<P>,
  itemsOf: (page: P) => T[],
): Promise<Kept<T[]>> {
  const pages = await allPages(readPage);
  const ttls = pages.flatMap(({ ttl }) => (ttl === undefined ? [] : [durationMs(ttl)]));
  return { items: pages.flatMap(itemsOf), ttlMs: ttls.length === 0 ? undefined : Math.min(...ttls) };
}

interface Page {
  readonly nextPageToken: string;
  readonly ttl?: Duration | undefined;
}
