import type { CallOptions, Client } from "@connectrpc/connect";
import type { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import type { Answering } from "../http/refusals.ts";
import { scopeOfSession, type Tools } from "./tool-list.ts";

export type Content = Client<typeof McpContentService>;

/** What the MCP servers of a session's agent have beside tools. */
export interface AgentSources {
  readonly content: Content;
  readonly options: CallOptions;
  readonly answering: Answering;
  /** The sources that can be used, by name. */
  readonly names: () => Promise<string[]>;
  /** Of each source what it answers; one that is no MCP server, has nothing of the kind or may not be asked has nothing. */
  each<T>(ask: (source: SourceOfSession) => Promise<T[]>): Promise<{ source: SourceOfSession; items: T[] }[]>;
}

export interface SourceOfSession {
  readonly sessionId: string;
  readonly source: string;
}

interface SourcesOptions {
  readonly tools: Tools;
  readonly content: Content;
  readonly options: CallOptions;
  readonly answering: Answering;
  readonly sessionId: () => Promise<string>;
}

export function createAgentSources({ tools, content, options, answering, sessionId }: SourcesOptions): AgentSources {
  async function names(): Promise<string[]> {
    const { sources } = await tools.listTools({ scope: scopeOfSession(await sessionId()), pageSize: 1 }, options);
    return sources.filter(({ available }) => available).map(({ source }) => source);
  }
  return {
    content,
    options,
    answering,
    names,
    async each(ask) {
      const id = await sessionId();
      const answered = (await names()).map(async (name) => {
        const source = { sessionId: id, source: name };
        return { source, items: await ask(source).catch(() => []) };
      });
      return Promise.all(answered);
    },
  };
}
