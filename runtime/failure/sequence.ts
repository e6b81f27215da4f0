import { refuse } from "./failure.ts";

/**
 * Refuses what lies beyond the next event of a log. Nobody was told of such a sequence by this store, so that it was reset or
 * restored since; who waited for it would be told nothing of what comes until then.
 */
export function requireReached(log: string, asked: bigint, next: bigint): void {
  if (asked <= next) return;
  refuse("out_of_range", `${log} has no event ${asked}: the next one is ${next}`, {
    reason: "SEQUENCE_NOT_REACHED",
    metadata: { next_sequence: String(next) },
  });
}
