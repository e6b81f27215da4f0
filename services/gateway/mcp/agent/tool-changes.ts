import type { CallOptions } from "@connectrpc/connect";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { delay } from "#runtime/time/delay.ts";
import { digestOf, readTools, type ToolScope, type Tools, toolsFrom } from "./tool-list.ts";

/** How soon a client that listens is told of another list. A list that has not changed is not sent, nor made. */
const FOLLOW_MS = 1_000;

export interface FollowedTools {
  readonly tools: Tools;
  readonly scope: ToolScope;
  readonly options: CallOptions;
  readonly signal: AbortSignal;
}

/** The digest of what a client is listed, now and whenever it is another. Ends when the session does, or the signal aborts. */
export async function* followTools({ tools, scope, options, signal }: FollowedTools): AsyncGenerator<string> {
  let [knownToolsRevision, known] = ["", ""];
  while (!signal.aborted) {
    try {
      const asked = { scope, knownToolsRevision, pageSize: 1 };
      const { unchanged, toolsRevision } = await tools.listTools(asked, { ...options, signal });
      if (!unchanged) {
        const digest = digestOf(toolsFrom(await readTools(tools, scope, { ...options, signal })));
        knownToolsRevision = toolsRevision;
        if (digest !== known) yield digest;
        known = digest;
      }
    } catch (error) {
      if (!isPassing(error)) return;
    }
    await delay(FOLLOW_MS, signal).catch(() => {}); // the client has left
  }
}

function isPassing(error: unknown): boolean {
  const { code, reason } = failureFromConnectError(error);
  return code === "unavailable" || code === "deadline_exceeded" || reason === "SESSION_SWITCHING";
}
