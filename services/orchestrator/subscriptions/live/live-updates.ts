/**
 * Live updates of runs for the watchers of this process.
 *
 * live-1  All watchers of a run share one subscription: the first one opens it, the last one closes it. A message is decoded once and passed
 *     on to all of them as the bytes that came.
 * live-2  A watcher joins, then asks the server whether the subscription stands, then reads the log. The log may be read on another node of a
 *     cluster, and be written to on a third one: they hear of the subscription by ways of their own. The round trip gives them time for
 *     it; what falls in between all the same is read after a silence (watch-3).
 * live-3  What waits is held once for all watchers, within a bound. One that does not read costs the others nothing: it gets what it missed
 *     from the log.
 */

import { fromBinary } from "@bufbuild/protobuf";
import type { Msg } from "@nats-io/transport-node";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { type Feed, Feeds } from "#runtime/collections/feeds/feeds.ts";
import { keepEncoded } from "#runtime/rpc/nats/frame/encoded.ts";
import type { LiveUpdate, LiveUpdates } from "../../runs/watch/watch.ts";
import { runSubjects } from "../run-subjects.ts";
import { instanceHeader, positionHeader } from "../streams/stream-run-log.ts";

/** A server that is away for longer is left to the client, which comes back. */
const standsWithinMs = 15_000;

/** After this long without updates, or twice that, a watcher reads the log, in case they were lost. */
const silenceMs = 1_500;

export function createLiveUpdates(bus: Bus): LiveUpdates {
  const feeds = new Feeds<LiveUpdate>();
  return {
    async subscribe(runId, signal) {
      using joining = new DisposableStack();
      const reader = joining.use(feeds.join(runId, signal, (feed) => openSubscription(bus, runId, feed))); // live-1
      const flush = () => bus.connection.flush(); // live-2; a lost server's successor knows the subscription, too
      await retryOnBus(bus.link, flush, { signal, timeoutMs: standsWithinMs, what: `following ${runId}` });
      joining.move();
      return reader;
    },
  };
}

function openSubscription(bus: Bus, runId: string, feed: Feed<LiveUpdate>): Disposable {
  let hasHeard = false;
  const subscription = listen(bus, runSubjects.live(runId), (message) => {
    hasHeard = true;
    const update = updateFromMessage(message);
    if (update === undefined) return feed.lose(); // what cannot be read may be an event: the log has it
    feed.push(update, message.data.length);
  });
  const stopListening = bus.link.onReturn(() => feed.lose());
  const timer = setInterval(() => {
    if (!hasHeard) feed.remind();
    hasHeard = false;
  }, silenceMs);
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
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
    keepEncoded(update, new Uint8Array(message.data)); // of its own: the connection's buffer holds others as well
    return { update, ...(position && { position: Number(position) }), ...(instance && { instance }) };
  } catch {
    return undefined; // no update
  }
}
