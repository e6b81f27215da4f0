import { fromBinary } from "@bufbuild/protobuf";
import type { Msg } from "@nats-io/transport-node";
import { WatchRunResponseSchema } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { delay } from "#runtime/time/delay.ts";
import type { LiveSubscription, LiveUpdate, LiveUpdates } from "../run/watch.ts";
import { runSubjects } from "./run-subjects.ts";
import { positionHeader } from "./stream-run-log.ts";

/** After this long without news a watcher reads the log, in case they were lost. */
const silenceMs = 2_000;

/** A watcher that falls behind by more than this is brought up to date from the log: it slows nobody else. */
const maxWaiting = 2_048;

export function createLiveUpdates(bus: Bus): LiveUpdates {
  return {
    async subscribe(runId) {
      const inlet = createInlet();
      const subscription = bus.connection.subscribe(runSubjects.live(runId), {
        callback: (error, message) => {
          if (error === null) inlet.push(message);
        },
      });
      const stopListening = bus.link.onReturn(inlet.lose);
      await bus.connection.flush();
      return {
        next: inlet.next,
        async [Symbol.asyncDispose]() {
          stopListening();
          subscription.unsubscribe();
        },
      };
    },
  };
}

/** Holds what came until it is asked for, up to a limit. */
function createInlet(): Pick<LiveSubscription, "next"> & { push: (message: Msg) => void; lose: () => void } {
  let waiting: Msg[] = [];
  let hasLost = false;
  let arrival = Promise.withResolvers<void>();

  function announce(): void {
    arrival.resolve();
    arrival = Promise.withResolvers();
  }

  async function next(signal: AbortSignal): Promise<LiveUpdate | undefined> {
    signal.throwIfAborted();
    if (waiting.length === 0 && !hasLost) await arrivalOrSilence(arrival.promise, signal);
    if (hasLost) {
      hasLost = false;
      return undefined;
    }
    const message = waiting.shift();
    return message && updateFromMessage(message);
  }

  return {
    next,
    push(message) {
      if (waiting.length >= maxWaiting) return lose();
      waiting.push(message);
      announce();
    },
    lose,
  };

  function lose(): void {
    waiting = [];
    hasLost = true;
    announce();
  }
}

async function arrivalOrSilence(arrival: Promise<void>, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  try {
    const silence = delay(silenceMs, AbortSignal.any([signal, over.signal]));
    await Promise.race([arrival, silence]);
    silence.catch(() => {}); // cut short when news arrived
  } finally {
    over.abort();
  }
}

function updateFromMessage(message: Msg): LiveUpdate {
  const position = message.headers?.get(positionHeader);
  return {
    update: fromBinary(WatchRunResponseSchema, message.data),
    ...(position && { position: Number(position) }),
  };
}
