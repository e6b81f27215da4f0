import { create, toBinary } from "@bufbuild/protobuf";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { publishWork } from "#runtime/bus/streams/publish-work.ts";

/**
 * Puts a wake-up of a session into the queue of those who run its agent. It names no run: the news stand in the inbox.
 * Acknowledged when it resolves.
 */
export function createSessionWaker(bus: Bus): (sessionId: string) => Promise<void> {
  return async (sessionId) => {
    const payload = toBinary(SessionWakeSchema, create(SessionWakeSchema, { sessionId }));
    const subject = `toolbus.wake.${sessionId}`;
    await publishWork(bus, { stream: "TOOLBUS_WAKES", subject, payload, what: `waking session ${sessionId}` });
  };
}
