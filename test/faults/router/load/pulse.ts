import type { Bus } from "#runtime/bus/bus.ts";
import type { Strike } from "../check/history.ts";

/** What the routers say of themselves twice a second. */
const PULSE = "toolbus.session.routers";

/** One that is silent for longer is late with everything else that it has to say each second, too. */
const STARVED_MS = 1_500;

/** Tells of each router that stood still although nobody had frozen it: on a busy machine, what it holds may be handed on. */
export function watchPulses(bus: Bus, onStarved: (strike: Strike) => void): Disposable {
  const heardAtMs = new Map<string, number>();
  const subscription = bus.connection.subscribe(PULSE, {
    callback(error, message) {
      if (error !== null) return;
      const { router } = message.json<{ router: string }>();
      const [fromMs, toMs] = [heardAtMs.get(router), Date.now()];
      heardAtMs.set(router, toMs);
      if (fromMs !== undefined && toMs - fromMs > STARVED_MS) onStarved({ kind: "starved", router, fromMs, toMs });
    },
  });
  return { [Symbol.dispose]: () => subscription.unsubscribe() };
}
