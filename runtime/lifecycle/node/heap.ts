import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Lets buffers grow with the heap before they are collected, as later releases of V8 always do. Up to 14, V8 collects the whole heap for
 * each 64 MB of them: some twelve times for one call of 60 MB, a fifth of the processor time that it takes of all services.
 */
export function collectBuffersWithHeap(): void {
  const major = Number.parseInt(process.versions.v8, 10);
  if (major <= 14) setFlagsFromString("--external-memory-accounted-in-global-limit");
}

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
