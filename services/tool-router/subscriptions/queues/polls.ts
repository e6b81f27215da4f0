import { errors, type Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { openInbox } from "#runtime/bus/credentials/inbox.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** The answer to a poll is lost after this time, or the consumer is. */
const SILENCE_MS = 5_000;

/** Asks a consumer for what it has now. No request waits there: what is replaced between two polls never comes. */
export function openPolls(bus: Bus, { stream, name }: { stream: string; name: string }, onMessage: (m: Msg) => void) {
  const { connection, link } = bus;
  const inbox = openInbox(connection);
  let left = 0;
  let ended = Promise.withResolvers<void>();
  const subscription = listen(bus, inbox, (message) => {
    const { code = 0, description = "" } = message.headers ?? {};
    if (code === 404 || code === 408) return ended.resolve(); // that is all
    if (code !== 0) return ended.reject(new errors.RequestError(description));
    left -= 1;
    if (left === 0) ended.resolve();
    onMessage(message);
  });
  return {
    /** So many messages at most; gives whether there may be more. Rejects when nobody answers. One at a time. */
    async poll(atMost: number, signal: AbortSignal): Promise<boolean> {
      left = atMost;
      ended = Promise.withResolvers();
      const request = JSON.stringify({ batch: atMost, no_wait: true });
      connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`, request, { reply: inbox });
      const answered = comesWithin(SILENCE_MS, unlessAborted(ended.promise, link.down, signal));
      if (!(await answered.finally(ended.resolve))) throw new errors.TimeoutError(); // resolved, it lets go of the signals
      return left <= 0;
    },
    [Symbol.dispose]: () => subscription.unsubscribe(),
  };
}
