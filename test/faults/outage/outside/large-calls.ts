// A process of its own makes very large calls at once, each over a connection of its own, and tells how each ended: nobody else waits
// until it has written and read them.

import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { ClientCall } from "../history.ts";
import { namesByTool } from "./catalogue.ts";
import { toldOf } from "./told.ts";

export interface LargeCalls {
  readonly url: string;
  readonly sessionIds: readonly string[];
  /** One call each. */
  readonly keys: readonly string[];
}

export type LargeEnd = Pick<ClientCall, "key" | "told">;

const BYTES = 60_000_000;
const TIMEOUT_MS = 120_000;

process.once("message", async ({ url, sessionIds, keys }: LargeCalls) => {
  const padding = "x".repeat(BYTES);
  const call = async (key: string, index: number): Promise<LargeEnd> => {
    const tools = createClient(ToolService, createConnectTransport({ baseUrl: url, httpVersion: "2" }));
    const argumentsJson = JSON.stringify({ key, padding });
    const sessionId = sessionIds[index % sessionIds.length]!;
    const request = { callId: key, sessionId, name: namesByTool.hosted_pure, argumentsJson };
    return { key, told: await toldOf(tools, request, TIMEOUT_MS) };
  };
  const ends = await Promise.all(keys.map(call));
  process.send?.(ends, () => process.exit(0));
});
