/**
 * Live updates of runs for the watchers of this process.
 *
 * live-1  All watchers of a run share one subscription: the first one opens it, the last one closes it. A message is decoded once and passed
 *     on to all of them as the bytes that came.
 * live-2  A watcher joins, then reads the log over the same connection: the server has the subscription before it reads.
 * live-3  Each watcher has a bounded buffer: a watcher that does not read costs the others nothing.
 */

import { fromBinary } from "@bufbuild/protobuf";
import type { Msg } from "@nats-io/transport-node";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { keepEncoded } from "#runtime/rpc/nats/frame/encoded.ts";
import type { LiveUpdate, LiveUpdates } from "../../runs/watch/watch.ts";
import { runSubjects } from "../run-subjects.ts";
import { instanceHeader, positionHeader } from "../streams/stream-run-log.ts";
import { openUpdateBuffer, type UpdateBuffer } from "./update-buffer.ts";

export function createLiveUpdates(bus: Bus): LiveUpdates {
  const feedsByRunId = new Map<string, Feed>();

  /** live-1 */
  function join(runId: string, buffer: UpdateBuffer): () => void {
    const feed = feedsByRunId.get(runId) ?? openFeed(bus, runId);
    feedsByRunId.set(runId, feed);
    feed.buffers.add(buffer);
    return () => {
      if (!feed.buffers.delete(buffer) || feed.buffers.size > 0) return;
      feedsByRunId.delete(runId);
      feed.close();
    };
  }

  return {
    async subscribe(runId, signal) {
      const buffer = openUpdateBuffer();
      const leave = join(runId, buffer);
      const onAbort = () => buffer.end(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      const close = async () => {
        signal.removeEventListener("abort", onAbort);
        buffer.end(undefined);
        leave();
      };
      return { next: buffer.next, [Symbol.asyncDispose]: close };
    },
  };
}

interface Feed {
  readonly buffers: Set<UpdateBuffer>;
  close(): void;
}

function openFeed(bus: Bus, runId: string): Feed {
  const buffers = new Set<UpdateBuffer>();
  const loseAll = () => {
    for (const buffer of buffers) buffer.lose();
  };
  const subscription = listen(bus, runSubjects.live(runId), (message) => {
    const update = updateFromMessage(message);
    if (update === undefined) return loseAll(); // what cannot be read may be an event: the log has it
    const bufferedUpdate = { update, bytes: message.data.length };
    for (const buffer of buffers) buffer.push(bufferedUpdate);
  });
  const stopListening = bus.link.onReturn(loseAll);
  return {
    buffers,
    close() {
      stopListening();
      subscription.unsubscribe();
    },
  };
}

function updateFromMessage(message: Msg): LiveUpdate | undefined {
  const position = message.headers?.get(positionHeader);
  const instance = message.headers?.get(instanceHeader);
  try {
    const update = fromBinary(WatchRunResponseSchema, message.data);
    keepEncoded(update, message.data.slice()); // of its own: the connection's buffer holds others as well
    return { update, ...(position && { position: Number(position) }), ...(instance && { instance }) };
  } catch {
    return undefined; // no update
  }
}
