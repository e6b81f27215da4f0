import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { OtherInstances } from "#runtime/bus/ownership/instances/other-instances.ts";
import { createChanges, looksAt } from "#runtime/collections/changes.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Holder } from "../servers/key.ts";

/** Connections that can be asked for: those of one instance, or of all. An empty session means every session. */
export interface Part {
  list(sessionId: string, signal: AbortSignal): Promise<McpConnection[]>;
  /** All connections as they stand, and again after each change; ends with the signal. */
  watch(sessionId: string, signal: AbortSignal): AsyncIterable<McpConnection[]>;
  /** Closes what belongs to a session's agent alone, and gives the number. */
  release(holder: Holder, signal: AbortSignal): Promise<number>;
}

/** All instances of the bridge, as one of them sees them: connections are spread over them. */
export function createFleet(own: Part, others: OtherInstances<Part>): Part {
  return {
    async list(sessionId, signal) {
      const elsewhere = await others.askAll(signal, (other) => other.list(sessionId, signal));
      return [...(await own.list(sessionId, signal)), ...elsewhere.flat()];
    },

    async release(holder, signal) {
      const [here, elsewhere] = await Promise.all([
        own.release(holder, signal),
        others.askAll(signal, (other) => other.release(holder, signal)),
      ]);
      return elsewhere.reduce((sum, closed) => sum + closed, here);
    },

    /**
     * Also of instances that come later; connections of one that goes are gone. Begins when this one has told what it has, and every other
     * one that is found has, or has not within two seconds.
     */
    async *watch(sessionId, signal) {
      const standing = new Map<Part, McpConnection[]>();
      const changes = createChanges();
      using ending = openEnding(signal);
      const follow = async (part: Part, begun: () => void) => {
        try {
          for await (const connections of part.watch(sessionId, ending.signal)) {
            standing.set(part, connections);
            begun();
            changes.tell();
          }
        } finally {
          standing.delete(part);
          begun();
          changes.tell();
        }
      };
      try {
        const here = new Promise<void>((begun) => void follow(own, begun).catch(() => {})); // ended by the signal
        await Promise.all([here, others.follow(ending.signal, follow)]);
        signal.throwIfAborted();
        for await (const _ of looksAt(changes, signal)) yield [...standing.values()].flat();
      } finally {
        ending.end();
      }
    },
  };
}
