import { errors } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import type { RunningCalls } from "../cancellation.ts";

const CANCELED = "toolbus.call.cancel";
const ANSWER_MS = 500;

/** Tells all routers of a cancellation; those that run the call answer. */
export function openRunningCalls(bus: Bus, end: (callId: string) => boolean): RunningCalls & Disposable {
  const subscription = bus.connection.subscribe(CANCELED, {
    callback: (error, message) => {
      if (error === null && end(message.string())) message.respond();
    },
  });
  return {
    async cancel(callId) {
      try {
        await bus.connection.request(CANCELED, callId, { timeout: ANSWER_MS });
        return true;
      } catch (error) {
        if (error instanceof errors.TimeoutError) return false; // all have heard it, and none runs it
        throw error;
      }
    },
    [Symbol.dispose]: () => subscription.unsubscribe(),
  };
}
