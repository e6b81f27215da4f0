import type { NatsConnection } from "@nats-io/transport-node";

/** What the client keeps until it writes; not part of its interface, and so looked at before it is used. */
interface Outbound {
  buffers: Uint8Array[];
  byteLength: number;
  pack(): void;
}

interface Protocol {
  outbound: Partial<Outbound>;
  sendCommand(command: string | Uint8Array, ...payloads: Uint8Array[]): void;
}

/**
 * Takes the memory of what is sent from Node's pool. The client by itself has the head of each message, and what it writes at
 * once, in an array of its own outside of V8's heap, which costs more than to fill it.
 *
 * Made for @nats-io/nats-core 3.4.0.
 */
export function poolFrames(connection: NatsConnection): void {
  const { protocol } = connection as unknown as { protocol?: Partial<Protocol> };
  const outbound = protocol?.outbound;
  const isKnown = typeof protocol?.sendCommand === "function" && typeof outbound?.pack === "function";
  if (!protocol || !isKnown || !Array.isArray(outbound?.buffers)) return; // another release of the client: it does as it does
  const send = protocol.sendCommand?.bind(protocol);
  protocol.sendCommand = (command, ...payloads) =>
    send?.(typeof command === "string" ? Buffer.from(command) : command, ...payloads);
  outbound.pack = packFromPool;
}

function packFromPool(this: Outbound): void {
  if (this.buffers.length > 1)
    this.buffers.splice(0, this.buffers.length, Buffer.concat(this.buffers, this.byteLength));
}
