import type { Bus } from "#runtime/bus/bus.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { askWhetherAlive } from "#runtime/bus/liveness.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Holders } from "../requests/holders.ts";

const subjectOf = (sessionId: string, requestId: string) => `toolbus.owner.caller-request.${sessionId}.${requestId}`;

/** Who holds a call is known by interest: the holder is subscribed to the request's subject, and answers with its name. */
export function createBusHolders(bus: Bus, instance: string): Holders {
  return {
    announce(sessionId, requestId) {
      // a refused subscription shows when nobody finds the holder
      const subscription = listen(bus, subjectOf(sessionId, requestId), (message) => void message.respond(instance));
      return {
        [Symbol.dispose]() {
          // who asked before the server heard of the end is still answered; on a closed connection nobody asks
          void subscription.drain().catch(() => {});
        },
      };
    },
    async locate(sessionId, requestId) {
      const holder = await askWhetherAlive(bus, { subject: subjectOf(sessionId, requestId) });
      if (holder.kind === "nobody") return undefined;
      if (holder.kind === "alive") return holder.message.string() === instance ? undefined : holder.message.string();
      const message = `the instance that holds request ${requestId} does not answer`;
      return refuse("unavailable", message, { reason: "OUTCOME_UNKNOWN" });
    },
  };
}
