import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Workers and connections that open with the first requests leave garbage too. */
const settleMs = 2_000;

/**
 * Collects what a start leaves, up to a third of the memory of its process. V8 would keep it as long as nothing is allocated, and
 * an idle process allocates nothing. All services in one process are held up by it for 0.3 to 0.8 s on a small machine, a service
 * alone for a part of that: 10 to 35 MB of each are worth it.
 */
export function collectGarbageOfStart(): void {
  setTimeout(() => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as (options: object) => void;
    // The flavor that also gives back the room that the young heap has grown to.
    collect({ type: "major", execution: "sync", flavor: "last-resort" });
  }, settleMs).unref();
}
