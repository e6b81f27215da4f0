import { fromBinary } from "@bufbuild/protobuf";
import type { Msg } from "@nats-io/transport-node";
import { WatchRunResponseSchema } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { persist } from "#runtime/bus/link.ts";
import type { LiveUpdate, LiveUpdates } from "../run/watch.ts";
import { runSubjects } from "./run-subjects.ts";
import { positionHeader } from "./stream-run-log.ts";

/** After this long without news, or twice that, a watcher reads the log, in case they were lost. */
const silenceMs = 1_500;

/** A server that is away for longer is left to the client, which comes back. */
const standsWithinMs = 15_000;

/** A watcher that falls behind by more than this is brought up to date from the log: it slows nobody else. */
const maxWaiting = 2_048;

export function createLiveUpdates(bus: Bus): LiveUpdates {
  return {
    async subscribe(runId, signal) {
      const inlet = createInlet();
      const subscription = bus.connection.subscribe(runSubjects.live(runId), {
        callback: (error, message) => {
          if (error === null) inlet.push(message);
        },
      });
      const stopListening = bus.link.onReturn(inlet.lose);
      const onAbort = () => inlet.end(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      const close = async () => {
        signal.removeEventListener("abort", onAbort);
        inlet.end(undefined);
        stopListening();
        subscription.unsubscribe();
      };
      try {
        const flush = () => bus.connection.flush(); // a lost server's successor knows the subscription, too
        await persist(bus.link, flush, { signal, timeoutMs: standsWithinMs, what: `following ${runId}`, isPassing });
      } catch (error) {
        await close();
        throw error;
      }
      return { next: inlet.next, [Symbol.asyncDispose]: close };
    },
  };
}

/** Holds what came until it is asked for, up to a limit. One timer watches for silence, however much comes. */
function createInlet() {
  let waiting: Msg[] = [];
  let hasLost = false;
  let hasHeard = false;
  let end: { reason: unknown } | undefined;
  let reader: (() => void) | undefined;
  const timer = setInterval(() => {
    if (!hasHeard && waiting.length === 0) lose();
    hasHeard = false;
  }, silenceMs);

  function announce(): void {
    reader?.();
    reader = undefined;
  }

  async function next(): Promise<LiveUpdate | undefined> {
    while (end === undefined && waiting.length === 0 && !hasLost) {
      await new Promise<void>((resolve) => {
        reader = resolve;
      });
    }
    if (end !== undefined) throw end.reason;
    if (hasLost) {
      hasLost = false;
      return undefined;
    }
    const message = waiting.shift();
    return message && updateFromMessage(message);
  }

  function push(message: Msg): void {
    hasHeard = true;
    if (waiting.length >= maxWaiting) {
      lose();
    } else {
      waiting.push(message);
      announce();
    }
  }

  function lose(): void {
    waiting = [];
    hasLost = true;
    announce();
  }

  return {
    next,
    push,
    lose,
    end(reason: unknown) {
      clearInterval(timer);
      end ??= { reason };
      announce();
    },
  };
}

function updateFromMessage(message: Msg): LiveUpdate {
  const position = message.headers?.get(positionHeader);
  return {
    update: fromBinary(WatchRunResponseSchema, message.data),
    ...(position && { position: Number(position) }),
  };
}
