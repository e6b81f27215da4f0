import { create, toBinary } from "@bufbuild/protobuf";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { retryOnBus } from "#runtime/bus/link.ts";

/**
 * Puts a wake-up of a session into the queue of those who run its agent. It names no run: the news stand in the inbox.
 * Acknowledged when it resolves.
 */
export function createSessionWaker(bus: Bus): (sessionId: string) => Promise<void> {
  return async (sessionId) => {
    const payload = toBinary(SessionWakeSchema, create(SessionWakeSchema, { sessionId }));
    const publish = () => bus.jetstream.publish(`toolbus.wake.${sessionId}`, payload, { timeout: 2_000 });
    await retryOnBus(bus.link, publish, { timeoutMs: 15_000, what: `waking session ${sessionId}`, isPassing });
  };
}
