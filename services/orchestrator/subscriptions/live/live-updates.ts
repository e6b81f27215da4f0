/**
 * Live updates of runs for the watchers of this process.
 *
 * live-1  All watchers of a run share one subscription: the first one opens it, the last one closes it. A message is decoded once and passed
 *     on to all of them as the bytes that came.
 * live-2  A watcher joins, then asks the server whether the subscription stands, then reads the log. The log may be read on another node of a
 *     cluster, and be written to on a third one: they hear of the subscription by ways of their own. The round trip gives them time for
 *     it; what falls in between all the same is read after a silence (watch-3).
 * live-3  Each watcher has a bounded buffer: a watcher that does not read costs the others nothing.
 */

import { addAbortListener } from "node:events";
import { fromBinary } from "@bufbuild/protobuf";
import type { Msg } from "@nats-io/transport-node";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { keepEncoded } from "#runtime/rpc/nats/frame/encoded.ts";
import type { LiveUpdate, LiveUpdates } from "../../runs/watch/watch.ts";
import { runSubjects } from "../run-subjects.ts";
import { instanceHeader, positionHeader } from "../streams/stream-run-log.ts";
import { openUpdateBuffer, type UpdateBuffer } from "./update-buffer.ts";

/** A server that is away for longer is left to the client, which comes back. */
const standsWithinMs = 15_000;

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
      const ending = addAbortListener(signal, () => buffer.end(signal.reason));
      const close = async () => {
        ending[Symbol.dispose]();
        buffer.end(undefined);
        leave();
      };
      try {
        const flush = () => bus.connection.flush(); // live-2; a lost server's successor knows the subscription, too
        await retryOnBus(bus.link, flush, { signal, timeoutMs: standsWithinMs, what: `following ${runId}` });
      } catch (error) {
        await close();
        throw error;
      }
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
