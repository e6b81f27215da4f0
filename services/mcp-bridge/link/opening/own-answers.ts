import type { Transport } from "@modelcontextprotocol/client";
import { RoundRobinQueue } from "#runtime/collections/turns/round-robin-queue.ts";
import { Failure } from "#runtime/failure/failure.ts";

/** How many are on their way at once: over HTTP each is a request, with a socket of its own. */
const MOST_SENDING = 16;
const MOST_UNREAD = 1_000;

/** Bounds the answers to what a server asks. One that asks and asks and reads none loses its connection: they would fill the memory. */
export function boundOwnAnswers(transport: Transport): void {
  const send = transport.send.bind(transport);
  const line = new RoundRobinQueue(MOST_SENDING);
  let [count, unread] = [0, 0];
  transport.send = async (message, options) => {
    if ("method" in message) return send(message, options);
    if (unread === MOST_UNREAD) {
      const text = `the server leaves ${MOST_UNREAD} answers unread`;
      transport.onerror?.(new Failure("resource_exhausted", text, { reason: "SHARE_EXCEEDED" }));
      return transport.close();
    }
    unread += 1;
    try {
      await line.run(`${count++}`, () => send(message, options));
    } finally {
      unread -= 1;
    }
  };
}
