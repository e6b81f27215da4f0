import type { NatsConnection } from "@nats-io/transport-node";

/** Where the client keeps what it has not written yet; not part of its interface, and so looked at before it is used. */
interface Outlet {
  flushPending: () => void;
}

/**
 * Makes the connection write once a turn of the event loop. The client by itself writes once a microtask, which is once a
 * message for a process that answers one thing with another; and a write costs more than all that led to it.
 *
 * Made for @nats-io/nats-core 3.4.0.
 */
export function coalesceWrites(connection: NatsConnection): void {
  const { protocol } = connection as unknown as { protocol?: Partial<Outlet> };
  if (typeof protocol?.flushPending !== "function") return; // another release of the client: it writes as it does
  const write = protocol.flushPending.bind(protocol);
  let isDue = false;
  protocol.flushPending = () => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      write();
    });
  };
}
