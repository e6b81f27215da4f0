import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { orAborted } from "../servers/changes.ts";
import type { Holder } from "../servers/key.ts";
import type { Connection } from "./connection.ts";
import type { Connections } from "./connections.ts";
import type { Part } from "./fleet.ts";

/** The connections that this instance has itself. */
export class OwnPart implements Part {
  readonly #connections: Connections;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  async list(sessionId: string): Promise<McpConnection[]> {
    return this.#of(sessionId).map((connection) => connection.status());
  }

  async *watch(sessionId: string, signal: AbortSignal): AsyncGenerator<McpConnection[]> {
    for (let told: string | undefined; ; ) {
      const changed = this.#connections.changes.next();
      const standing = this.#of(sessionId).map((connection) => connection.status());
      const text = JSON.stringify(
        standing.map((one) => [one.id, one.health, one.reason, one.toolCount, one.protocolVersion, one.attemptCount]),
      );
      if (told !== text) yield standing;
      told = text;
      await orAborted(changed, signal);
    }
  }

  release(holder: Holder): Promise<number> {
    return this.#connections.releaseScope(holder);
  }

  #of(sessionId: string): Connection[] {
    const all = this.#connections.list();
    return sessionId === "" ? all : all.filter(({ holder }) => holder.sessionId === sessionId);
  }
}
