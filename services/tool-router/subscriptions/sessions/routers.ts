import type { Bus } from "#runtime/bus/bus.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { openPeriodic } from "#runtime/lifecycle/background.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";

/*
 * Routers know each other by heartbeats, twice a second.
 *
 * routers-1  A router without a heartbeat for 2.5 s counts as dead: its switches are taken over, which is safe even if it lives (switch-1 of
 *     sessions/switch/steps.ts).
 * routers-2  A router without a heartbeat for 5 s is not waited for when a session drains. A router that stops says so.
 * routers-3  For a second after this router came, or came back to the bus, it does not know the others yet: silence means nothing.
 */

const HERE = "toolbus.session.routers";
const LEFT = "toolbus.session.left";
const WHO_LEFT = "toolbus.session.who_left";

const HEARTBEAT_MS = 500;
const GONE_MS = 2_500;
const FORGOTTEN_MS = 5_000;
const SETTLING_MS = 1_000;
const ASK_AGAIN_MS = 250;

interface Heartbeat {
  router: string;
  /** Asks the others to say that they are there. */
  asks?: boolean;
  leaves?: boolean;
}

interface Place {
  sessionId: string;
  revision: number;
}

/** `onAsked` answers for this router by `announceDrained`, if it has drained the session. */
export async function openRouters(bus: Bus, self: string, onAsked: (sessionId: string, revision: number) => void) {
  const { connection } = bus;
  const lastHeartbeatAt = new Map<string, number>();
  const waiting = new Map<string, { revision: number; left: Set<string>; changed: PromiseWithResolvers<void> }>();
  let settledAt = performance.now() + SETTLING_MS;

  const publishHeartbeat = (more: Partial<Heartbeat> = {}) =>
    connection.publish(HERE, JSON.stringify({ router: self, ...more }));
  const subscriptions = [
    subscribed<Heartbeat>(HERE, onHeartbeat),
    subscribed<Place & Heartbeat>(LEFT, onDrained),
    subscribed<Place>(WHO_LEFT, ({ sessionId, revision }) => onAsked(sessionId, revision)),
  ];

  function subscribed<T>(subject: string, take: (said: T) => void) {
    return listen(bus, subject, (message) => take(message.json<T>()));
  }

  function onHeartbeat({ router, asks, leaves }: Heartbeat): void {
    if (leaves) lastHeartbeatAt.delete(router);
    else lastHeartbeatAt.set(router, performance.now());
    if (asks && router !== self) publishHeartbeat();
    for (const { changed } of waiting.values()) if (leaves) changed.resolve();
  }

  function onDrained({ sessionId, revision, router }: Place & Heartbeat): void {
    const wait = waiting.get(sessionId);
    if (wait === undefined || revision < wait.revision || wait.left.has(router)) return;
    wait.left.add(router);
    wait.changed.resolve();
  }

  const endReturns = bus.link.onReturn(() => {
    settledAt = performance.now() + SETTLING_MS;
    for (const router of lastHeartbeatAt.keys()) lastHeartbeatAt.set(router, performance.now());
    publishHeartbeat({ asks: true });
  });
  publishHeartbeat({ asks: true });
  await connection.flush();
  const publishing = openPeriodic({
    everyMs: HEARTBEAT_MS,
    work: async () => bus.link.isUp && publishHeartbeat(),
    onError: () => {}, // a connection that is closed has no routers to tell
  });

  function areAllDrained(left: ReadonlySet<string>): boolean {
    const since = performance.now() - FORGOTTEN_MS; // routers-2
    const missing = [...lastHeartbeatAt].filter(([router, at]) => at > since && !left.has(router));
    return missing.length === 0 && left.has(self) && performance.now() >= settledAt; // routers-3
  }

  return {
    self,
    isAlive: (router: string) =>
      performance.now() < settledAt + GONE_MS || performance.now() - (lastHeartbeatAt.get(router) ?? 0) < GONE_MS, // routers-1
    announceDrained: (sessionId: string, revision: number) =>
      connection.publish(LEFT, JSON.stringify({ sessionId, revision, router: self } satisfies Place & Heartbeat)),
    /** Whether every live router has drained the session, within that time. */
    async allDrained(sessionId: string, revision: number, { ms, signal }: { ms: number; signal: AbortSignal }) {
      const wait = { revision, left: new Set<string>(), changed: Promise.withResolvers<void>() };
      waiting.set(sessionId, wait);
      const endsAt = performance.now() + ms;
      try {
        while (!areAllDrained(wait.left)) {
          if (performance.now() >= endsAt || signal.aborted) return false;
          connection.publish(WHO_LEFT, JSON.stringify({ sessionId, revision } satisfies Place));
          const leftMs = Math.max(1, endsAt - performance.now());
          await comesWithin(Math.min(ASK_AGAIN_MS, leftMs), wait.changed.promise);
          wait.changed = Promise.withResolvers();
        }
        return true;
      } finally {
        if (waiting.get(sessionId) === wait) waiting.delete(sessionId);
      }
    },
    async [Symbol.asyncDispose]() {
      endReturns();
      await publishing[Symbol.asyncDispose]();
      for (const subscription of subscriptions) subscription.unsubscribe();
      publishHeartbeat({ leaves: true });
    },
  };
}
