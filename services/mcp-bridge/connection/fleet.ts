import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { OtherInstances } from "#runtime/bus/ownership/instances/other-instances.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { createChanges, orAborted } from "../servers/changes.ts";
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
export class Fleet implements Part {
  readonly #own: Part;
  readonly #others: OtherInstances<Part>;

  constructor(own: Part, others: OtherInstances<Part>) {
    this.#own = own;
    this.#others = others;
  }

  async list(sessionId: string, signal: AbortSignal): Promise<McpConnection[]> {
    const others = await this.#others.askAll(signal, (other) => other.list(sessionId, signal));
    return [...(await this.#own.list(sessionId, signal)), ...others.flat()];
  }

  async release(holder: Holder, signal: AbortSignal): Promise<number> {
    const [own, others] = await Promise.all([
      this.#own.release(holder, signal),
      this.#others.askAll(signal, (other) => other.release(holder, signal)),
    ]);
    return others.reduce((sum, closed) => sum + closed, own);
  }

  /**
   * Also of instances that come later; connections of one that goes are gone. Begins when this one has told what it has, and every other
   * one that is found has, or has not within two seconds.
   */
  async *watch(sessionId: string, signal: AbortSignal): AsyncGenerator<McpConnection[]> {
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
      const own = new Promise<void>((begun) => void follow(this.#own, begun).catch(() => {})); // ended by the signal
      await Promise.all([own, this.#others.follow(ending.signal, follow)]);
      signal.throwIfAborted();
      for (;;) {
        const changed = changes.next();
        yield [...standing.values()].flat();
        await orAborted(changed, signal);
      }
    } finally {
      ending.end();
    }
  }
}
