import { getOrInsertComputed } from "../../collections/get-or-insert-computed.ts";
import { RoundRobinQueue } from "../../collections/turns/round-robin-queue.ts";
import { currentPrincipal } from "../../rpc/identity.ts";

/**
 * nats-server cuts a connection for which 64 MiB wait, with all that goes on over it: no more batches than these are on their way at
 * once. Those of one stream are fewer, for they come to nothing while its leader is lost, and other streams go on.
 */
const turns = new RoundRobinQueue(16);
const MOST_OF_STREAM = 4;
const turnsByStream = new Map<string, RoundRobinQueue>();

/** What takes more than one batch is long: a principal reads one of those at a time, and so many that may be short. */
const FIRST_LANES = 4;
let lane = 0;

export type InTurn = <T>(read: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** Whose turn a batch is: the principal's, or of what a service reads by itself, the subject's. */
export function turnOfBatch(stream: string, subject: string, isFirst: boolean): InTurn {
  lane = (lane + 1) % FIRST_LANES;
  const key = `${stream} ${currentPrincipal() ?? subject} ${isFirst ? lane : "long"}`;
  const ofStream = getOrInsertComputed(turnsByStream, stream, () => new RoundRobinQueue(MOST_OF_STREAM));
  return (read, signal) => ofStream.run(key, () => turns.run(key, read, signal), signal);
}
