import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { delay } from "#runtime/time/delay.ts";
import { digestOf, readTools, type ToolScope, type Tools, toolsFrom } from "./tool-list.ts";

/** How long the router is asked to wait for another list, and how soon it is asked again after a failure. */
const FOLLOW_MS = 1_000;
/** A client is not told of lists that follow each other sooner than this. */
const BETWEEN_MS = 100;

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
    const againAt = performance.now() + FOLLOW_MS;
    let pauseMs: number | undefined;
    try {
      const asked = { scope, knownToolsRevision, changeWait: durationFromMs(FOLLOW_MS), pageSize: 1 };
      const { unchanged, toolsRevision } = await tools.listTools(asked, { ...options, signal });
      if (!unchanged) {
        const digest = digestOf(toolsFrom(await readTools(tools, scope, { ...options, signal })));
        knownToolsRevision = toolsRevision;
        if (digest !== known) yield digest;
        known = digest;
        pauseMs = BETWEEN_MS;
      }
    } catch (error) {
      if (!isPassing(error)) return;
    }
    pauseMs ??= againAt - performance.now(); // of what did not wait
    await delay(pauseMs, signal).catch(() => {}); // the client has left
  }
}

function isPassing(error: unknown): boolean {
  const { code, reason } = failureFromConnectError(error);
  return code === "unavailable" || code === "deadline_exceeded" || reason === "SESSION_SWITCHING";
}
