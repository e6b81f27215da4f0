import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Instances } from "#runtime/bus/ownership/instances.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
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

export interface FleetParts {
  instance: string;
  own: Part;
  instances: Instances;
  /** What another instance has itself. */
  partOf: (instance: string) => Part;
  logger: { warn(message: string): void };
}

const LOOK_AGAIN_MS = 2_000;

/** Follows a part to its end; says when it has told what stands, or has ended. */
type Follow = (part: Part, begun: () => void) => Promise<void>;

/** All instances of the bridge, as one of them sees them: connections are spread over them. */
export class Fleet implements Part {
  readonly #parts: FleetParts;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  async list(sessionId: string, signal: AbortSignal): Promise<McpConnection[]> {
    const others = await this.#askOthers(signal, (other) => other.list(sessionId, signal));
    return [...(await this.#parts.own.list(sessionId, signal)), ...others.flat()];
  }

  async release(holder: Holder, signal: AbortSignal): Promise<number> {
    const [own, others] = await Promise.all([
      this.#parts.own.release(holder, signal),
      this.#askOthers(signal, (other) => other.release(holder, signal)),
    ]);
    return others.reduce((sum, closed) => sum + closed, own);
  }

  /**
   * Also of instances that come later; connections of one that goes are gone. Begins when every instance that is found has told
   * what it has, or has not within two seconds.
   */
  async *watch(sessionId: string, signal: AbortSignal): AsyncGenerator<McpConnection[]> {
    const standing = new Map<Part, McpConnection[]>();
    const changes = createChanges();
    const over = new AbortController();
    using ending = openEnding(signal, over.signal);
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
      const all = [this.#followOwn(follow), this.#followOthers(ending.signal, follow)];
      await Promise.race([Promise.all(all), delay(LOOK_AGAIN_MS, ending.signal)]);
      for (;;) {
        const changed = changes.next();
        yield [...standing.values()].flat();
        await orAborted(changed, signal);
      }
    } finally {
      over.abort();
    }
  }

  #followOwn(follow: Follow): Promise<void> {
    return new Promise((begun) => void follow(this.#parts.own, begun).catch(() => {})); // ended by the signal
  }

  /** Resolves when those that are there have begun. */
  #followOthers(signal: AbortSignal, follow: Follow): Promise<void> {
    const { instance, instances, partOf } = this.#parts;
    const followed = new Set([instance]);
    const look = async () => {
      const found = await instances.list(signal).catch(() => []); // asked again soon
      const begun = found
        .filter((name) => !followed.has(name))
        .map((other) => {
          followed.add(other);
          const forget = () => {
            followed.delete(other);
            instances.forget(other);
          };
          return new Promise<void>((begun) => void follow(partOf(other), begun).then(forget, forget)); // one that is gone is not found again
        });
      await Promise.all(begun);
    };
    const first = look();
    void (async () => {
      while (!signal.aborted) {
        await delay(LOOK_AGAIN_MS, signal).catch(() => {}); // the loop looks at the signal itself
        if (!signal.aborted) void look();
      }
    })();
    return first;
  }

  /** Asks all others; one that does not answer is left out. */
  async #askOthers<R>(signal: AbortSignal, ask: (other: Part) => Promise<R>): Promise<R[]> {
    const { instance, instances, partOf, logger } = this.#parts;
    const others = (await instances.list(signal)).filter((other) => other !== instance);
    const answers = await Promise.allSettled(others.map((other) => ask(partOf(other))));
    return answers.flatMap((answer, index) => {
      if (answer.status === "fulfilled") return [answer.value];
      instances.forget(others[index] ?? "");
      logger.warn(`the instance ${others[index]} does not answer: ${messageFromUnknown(answer.reason)}`);
      return [];
    });
  }
}
