import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { looksAt } from "#runtime/collections/changes.ts";
import type { Connections } from "./connections.ts";
import type { Part } from "./fleet.ts";

/** The connections that this instance has itself. */
export function createOwnPart(connections: Connections): Part {
  function list(sessionId: string): McpConnection[] {
    const own = connections.list().filter(({ holder }) => sessionId === "" || holder.sessionId === sessionId);
    return own.map((connection) => connection.status());
  }

  return {
    list: async (sessionId) => list(sessionId),
    async *watch(sessionId, signal) {
      let told: string | undefined;
      for await (const _ of looksAt(connections.changes, signal)) {
        const standing = list(sessionId);
        const text = JSON.stringify(
          standing.map((one) => [one.id, one.health, one.reason, one.toolCount, one.protocolVersion, one.attemptCount]),
        );
        if (told !== text) yield standing;
        told = text;
      }
    },
    release: (holder) => connections.releaseScope(holder),
  };
}
