import type { ListToolsResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";

/** Lists of tools that are alike for many sessions, the last of each agent: the router tells only what differs from them. */
export interface KnownLists {
  /** Asks with the revision of the list that is known under the key, empty for none; gives that list if it still stands. */
  ask(key: string, list: (knownRevision: string) => Promise<ListToolsResponse>): Promise<ListToolsResponse>;
}

const mostKept = 256;

export function createKnownLists(): KnownLists {
  const kept = new Map<string, ListToolsResponse>();
  return {
    async ask(key, list) {
      const known = kept.get(key);
      const told = await list(known?.toolsRevision ?? "");
      if (told.isKnown && known !== undefined) return known;
      if (told.toolsRevision === "") return told;
      kept.delete(key); // the one that was told last stands last
      kept.set(key, told);
      const [oldest] = kept.keys();
      if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest);
      return told;
    },
  };
}
