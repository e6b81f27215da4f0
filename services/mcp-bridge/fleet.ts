import type { McpServerStatus } from "#gen/toolbus/mcp/v1/mcp_servers_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { createChanges, orAborted } from "./connection/changes.ts";
import type { Connection } from "./connection/connection.ts";
import type { Connections } from "./connections.ts";
import type { Holder } from "./key.ts";

/** All instances of the bridge, as one of them sees them: connections are spread over them. */
export interface FleetParts {
  instance: string;
  connections: Connections;
  /** The instances that answer at the moment. */
  instances: (signal: AbortSignal) => Promise<string[]>;
  member: (instance: string) => Member;
  logger: { warn(message: string): void };
}

/** Another instance, asked for its own part only. */
export interface Member {
  list(sessionId: string, signal: AbortSignal): Promise<McpServerStatus[]>;
  watch(sessionId: string, signal: AbortSignal): AsyncIterable<McpServerStatus>;
  release(holder: Holder, signal: AbortSignal): Promise<number>;
}

export type Fleet = ReturnType<typeof createFleet>;

const LOOK_AGAIN_MS = 2_000;

export function createFleet({ instance, connections, instances, member, logger }: FleetParts) {
  const ownStatuses = (sessionId: string) => connectionsOf(sessionId).map((connection) => connection.status());

  function connectionsOf(sessionId: string): Connection[] {
    const all = connections.list();
    return sessionId === "" ? all : all.filter(({ holder }) => holder.sessionId === sessionId);
  }

  /** Asks all others; one that does not answer is left out. */
  async function askOthers<R>(signal: AbortSignal, ask: (other: Member) => Promise<R>): Promise<R[]> {
    const others = (await instances(signal)).filter((other) => other !== instance);
    const answers = await Promise.allSettled(others.map((other) => ask(member(other))));
    return answers.flatMap((answer, index) => {
      if (answer.status === "fulfilled") return [answer.value];
      logger.warn(`the instance ${others[index]} does not answer: ${messageFromUnknown(answer.reason)}`);
      return [];
    });
  }

  async function* watchOwn(sessionId: string, signal: AbortSignal): AsyncGenerator<McpServerStatus> {
    const told = new Map<Connection, string>();
    for (;;) {
      const changed = connections.changes.next();
      const current = connectionsOf(sessionId);
      const gone = [...told.keys()].filter((connection) => connection.isClosed);
      for (const connection of [...current, ...gone]) {
        const status = connection.status();
        const text = JSON.stringify([status.health, status.reason, status.tools, status.protocolVersion]);
        const isNews = told.get(connection) !== text;
        if (connection.isClosed) told.delete(connection);
        else told.set(connection, text);
        if (isNews) yield status;
      }
      await orAborted(changed, signal);
    }
  }

  /** Also of instances that come later; connections of one that goes are not told any more. */
  async function* watch(sessionId: string, signal: AbortSignal): AsyncGenerator<McpServerStatus> {
    const told: McpServerStatus[] = [];
    const changes = createChanges();
    const over = new AbortController();
    using ending = openEnding(signal, over.signal);
    const ends = ending.signal;
    const follow = async (statuses: AsyncIterable<McpServerStatus>) => {
      for await (const status of statuses) {
        told.push(status);
        changes.tell();
      }
    };
    void follow(watchOwn(sessionId, ends)).catch(() => {}); // ended by the signal
    void followOthers(ends, (other) => follow(other.watch(sessionId, ends)));
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

  async function followOthers(signal: AbortSignal, follow: (other: Member) => Promise<void>): Promise<void> {
    const followed = new Set([instance]);
    while (!signal.aborted) {
      const found = await instances(signal).catch(() => []); // asked again soon
      for (const other of found.filter((name) => !followed.has(name))) {
        followed.add(other);
        const forget = () => followed.delete(other);
        follow(member(other)).then(forget, forget); // one that is gone is not found again
      }
      await delay(LOOK_AGAIN_MS, signal).catch(() => {}); // the loop looks at the signal itself
    }
  }

  return {
    ownStatuses,
    watchOwn,
    watch,
    async statuses(sessionId: string, signal: AbortSignal): Promise<McpServerStatus[]> {
      const others = await askOthers(signal, (other) => other.list(sessionId, signal));
      return [...ownStatuses(sessionId), ...others.flat()];
    },
    releaseOwn: (holder: Holder) => connections.releaseScope(holder),
    async release(holder: Holder, signal: AbortSignal): Promise<number> {
      const [own, others] = await Promise.all([
        connections.releaseScope(holder),
        askOthers(signal, (other) => other.release(holder, signal)),
      ]);
      return others.reduce((sum, closed) => sum + closed, own);
    },
  };
}
