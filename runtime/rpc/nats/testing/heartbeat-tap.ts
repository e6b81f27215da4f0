import { FrameKind, parseFrame } from "../frame/frame.ts";
import type { EchoWorld } from "./echo-world.ts";

/**
 * Listens to all inboxes and counts the heartbeats to each: time that has passed for the calls themselves. While it listens,
 * nobody is told that an inbox is gone.
 */
export async function openHeartbeatTap(world: EchoWorld) {
  const { connection } = await world.connect();
  const beatsByInbox = new Map<string, number>();
  const subscription = connection.subscribe("_INBOX.>", {
    callback: (_error, { subject, data }) => {
      if (parseFrame(data)?.kind === FrameKind.heartbeat)
        beatsByInbox.set(subject, (beatsByInbox.get(subject) ?? 0) + 1);
    },
  });
  await connection.flush();
  return {
    /** How many inboxes have been sent at least so many heartbeats. */
    inboxesWith: (beats: number) => [...beatsByInbox.values()].filter((count) => count >= beats).length,
    async [Symbol.asyncDispose]() {
      subscription.unsubscribe();
      await connection.flush();
    },
  };
}
