import type { Tool as McpTool } from "@modelcontextprotocol/server";
import MiniSearch from "minisearch";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";

/** A list of tools, found by words (BM25). */
export interface ToolIndex {
  readonly byName: ReadonlyMap<string, McpTool>;
  /** The best first. */
  search(query: string, limit: number): readonly McpTool[];
}

/** By the names of their lists, which say what is in them: whoever has the same tools is served by the same index. */
const indexes = new BoundedMap<string, ToolIndex>(16);

export function indexOf(toolsRevision: string, tools: () => McpTool[]): ToolIndex {
  const known = indexes.get(toolsRevision);
  if (known !== undefined) return known;
  const index = createIndex(tools());
  if (toolsRevision !== "") indexes.set(toolsRevision, index);
  return index;
}

/** `createPullRequest` and `create_pull_request` are three words each. */
function wordsOf(text: string): string[] {
  return text.replaceAll(/(?<=[\p{Ll}\d])(?=\p{Lu})/gu, " ").match(/[\p{L}\d]+/gu) ?? [];
}

export function createIndex(tools: readonly McpTool[]): ToolIndex {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const texts = new MiniSearch({
    idField: "name",
    fields: ["name", "title", "description", "parameters"],
    tokenize: wordsOf,
    searchOptions: {
      boost: { name: 4, title: 3 },
      prefix: (word) => word.length > 2,
      fuzzy: (word) => word.length > 4 && 0.2,
    },
  });
  texts.addAll(
    tools.map(({ name, title, annotations, description, inputSchema }) => ({
      name,
      title: title ?? annotations?.title,
      description,
      parameters: Object.keys(inputSchema.properties ?? {}).join(" "),
    })),
  );
  return {
    byName,
    search: (query, limit) =>
      texts
        .search(query)
        .slice(0, limit)
        .flatMap(({ id }) => byName.get(id) ?? []),
  };
}
