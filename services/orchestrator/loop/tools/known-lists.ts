import type { ListToolsResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";

const mostKept = 256;

/** Lists of tools that are alike for many sessions, the last of each agent: the router sends a list only if it differs. */
export function createKnownLists() {
  const kept = new BoundedMap<string, ListToolsResponse>(mostKept);
  return {
    /** Asks with the revision of the list that is known under the key, empty for none; gives that list if it still stands. */
    async ask(key: string, list: (knownRevision: string) => Promise<ListToolsResponse>): Promise<ListToolsResponse> {
      const known = kept.get(key);
      const told = await list(known?.toolsRevision ?? "");
      if (told.unchanged && known !== undefined) return known;
      if (told.toolsRevision === "") return told;
      kept.set(key, told);
      return told;
    },
  };
}
