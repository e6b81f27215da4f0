import type { Bus } from "#runtime/bus/bus.ts";
import { probeSubjects } from "#runtime/bus/link/storage.ts";

/** A service that writes no probes any more is no longer there. */
const heldMs = 10_000;

/** Why something cannot be stored, as this gateway has found out or a service has told; undefined while all can be. */
export function followStorageFaults({ connection, link }: Bus): () => string | undefined {
  const told = new Map<string, { fault: string; atMs: number }>();
  connection.subscribe(probeSubjects, {
    callback: (_, { subject, data }) =>
      void told.set(subject, { fault: Buffer.from(data).toString().trim(), atMs: performance.now() }),
  });
  return () => {
    const faults = [...told.values()].filter(({ atMs }) => performance.now() - atMs < heldMs).map(({ fault }) => fault);
    return link.storage.fault ?? faults.find((fault) => fault !== "");
  };
}
