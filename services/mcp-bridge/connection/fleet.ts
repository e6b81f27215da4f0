import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { createChanges, orAborted } from "../servers/changes.ts";
import type { Holder } from "../servers/key.ts";

/** Connections that can be asked for: those of one instance, or of all. An empty session means every session. */
export interface Part {
  list(sessionId: string, signal: AbortSignal): Promise<McpConnection[]>;
  /** Each connection as it stands, and again after each change; ends with the signal. */
  watch(sessionId: string, signal: AbortSignal): AsyncIterable<McpConnection>;
  /** Closes what belongs to a session's agent alone, and gives the number. */
  release(holder: Holder, signal: AbortSignal): Promise<number>;
}

export interface FleetParts {
  instance: string;
  own: Part;
  /** The instances that answer at the moment. */
  instances: (signal: AbortSignal) => Promise<string[]>;
  /** What another instance has itself. */
  partOf: (instance: string) => Part;
  logger: { warn(message: string): void };
}

const LOOK_AGAIN_MS = 2_000;

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

  /** Also of instances that come later; connections of one that goes are not told any more. */
  async *watch(sessionId: string, signal: AbortSignal): AsyncGenerator<McpConnection> {
    const told: McpConnection[] = [];
    const changes = createChanges();
    const over = new AbortController();
    using ending = openEnding(signal, over.signal);
    const follow = async (part: Part) => {
      for await (const status of part.watch(sessionId, ending.signal)) {
        told.push(status);
        changes.tell();
      }
    };
    void follow(this.#parts.own).catch(() => {}); // ended by the signal
    void this.#followOthers(ending.signal, follow);
    try {
      for (;;) {
        const changed = changes.next();
        yield* told.splice(0);
        await orAborted(changed, signal);
      }
    } finally {
      over.abort();
    }
  }

  async #followOthers(signal: AbortSignal, follow: (other: Part) => Promise<void>): Promise<void> {
    const { instance, instances, partOf } = this.#parts;
    const followed = new Set([instance]);
    while (!signal.aborted) {
      const found = await instances(signal).catch(() => []); // asked again soon
      for (const other of found.filter((name) => !followed.has(name))) {
        followed.add(other);
        const forget = () => followed.delete(other);
        follow(partOf(other)).then(forget, forget); // one that is gone is not found again
      }
      await delay(LOOK_AGAIN_MS, signal).catch(() => {}); // the loop looks at the signal itself
    }
  }

  /** Asks all others; one that does not answer is left out. */
  async #askOthers<R>(signal: AbortSignal, ask: (other: Part) => Promise<R>): Promise<R[]> {
    const { instance, instances, partOf, logger } = this.#parts;
    const others = (await instances(signal)).filter((other) => other !== instance);
    const answers = await Promise.allSettled(others.map((other) => ask(partOf(other))));
    return answers.flatMap((answer, index) => {
      if (answer.status === "fulfilled") return [answer.value];
      logger.warn(`the instance ${others[index]} does not answer: ${messageFromUnknown(answer.reason)}`);
      return [];
    });
  }
}
