import type { Bus } from "#runtime/bus/bus.ts";
import type { StreamName } from "#runtime/bus/declarations/declarations.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { messagesUntil } from "#runtime/bus/streams/messages-until.ts";

/*
 * SEC-6: a stream that many fill has room for each of them. While it is filled to less than three quarters nobody is asked. Above that,
 * those give way who hold the most, as far as it takes to come to 70 %: whoever holds less than they keeps everything.
 */

const HIGH_MARK = 0.75;
const LOW_MARK = 0.7;

/** What a message takes besides its content. */
const OVERHEAD_BYTES = 64;

export interface MessageSize {
  readonly subject: string;
  readonly sequence: number;
  readonly bytes: number;
}

/** How many bytes are to go so that room is there again; undefined while it is. */
export async function targetOf(bus: Bus, stream: StreamName): Promise<number | undefined> {
  const ask = () => bus.manager.streams.info(stream);
  const { state, config } = await retryOnBus(bus.link, ask, { what: `measuring the room of ${stream}` });
  return state.bytes < HIGH_MARK * config.max_bytes ? undefined : LOW_MARK * config.max_bytes;
}

/** What each message of a stream takes, in order. Nothing of their content is read. */
export async function* sizesOf(bus: Bus, stream: StreamName, signal: AbortSignal): AsyncGenerator<MessageSize> {
  const { state } = await bus.manager.streams.info(stream);
  if (state.messages === 0) return;
  const consumer = await bus.jetstream.consumers.get(stream, { headers_only: true, deliver_policy: "all" });
  const messages = await consumer.consume({ max_messages: 1_000 });
  try {
    for await (const { subject, seq, headers, info } of messagesUntil(messages, signal)) {
      if (seq > state.last_seq) return;
      const bytes = OVERHEAD_BYTES + Number(headers?.get("Nats-Msg-Size") ?? 0);
      yield { subject, sequence: seq, bytes };
      if (info.pending === 0) return;
    }
  } finally {
    messages.stop();
    void consumer.delete().catch(() => {}); // the server is gone, or the consumer is
  }
}

/** Of each holder that has more than all may have, how much that is, so that together they have no more than `target`. */
export function excessOf(bytesByHolder: ReadonlyMap<string, number>, target: number): Map<string, number> {
  let left = target;
  const ascending = [...bytesByHolder.entries()].sort(([, one], [, other]) => one - other);
  const excess = new Map<string, number>();
  for (const [index, [holder, bytes]] of ascending.entries()) {
    const level = left / (ascending.length - index);
    left -= Math.min(bytes, level);
    if (bytes > level) excess.set(holder, bytes - level);
  }
  return excess;
}
