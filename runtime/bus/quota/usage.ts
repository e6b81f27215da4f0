import { BoundedMap } from "../../collections/maps/bounded-map.ts";
import { openEnding } from "../../time/ending.ts";
import type { Bus } from "../bus.ts";
import type { BucketName } from "../declarations/declarations.ts";
import { followStream } from "../streams/follow/follow.ts";
import type { FillLevel } from "./watermarks.ts";

/*
 * SEC-6: who holds how much of a store, and by how much each is over its quota. There is one level for all, so that the holders that
 * are cut to it free enough: whoever holds less than it is under quota, keeps everything, and goes on.
 */

/** Whose a subject's messages are; empty for nobody's. */
export type HolderOf = (subject: string) => string | Promise<string>;

const HOLDER = "Toolbus-Holder";

/** Says in a message whose it is, so that who measures reads nothing of its content. */
export function holderHeader(holder: string): Record<string, string> {
  return { [HOLDER]: Buffer.from(holder).toString("base64url") };
}

/** What a message takes besides its content. */
const OVERHEAD_BYTES = 64;
const KNOWN_HOLDERS = 50_000;

/** What each message of a stream takes, in order. Nothing of their content is read. */
export async function* sizesOf(bus: Bus, stream: string, signal: AbortSignal) {
  const { state } = await bus.manager.streams.info(stream);
  if (state.messages === 0) return;
  using ending = openEnding(signal); // others may remove the rest meanwhile
  const options = { signal: ending.signal, onIdle: ending.end };
  for await (const message of followStream(bus, { stream, headers_only: true }, options)) {
    const { subject, sequence, headers, pending } = message;
    if (sequence > state.last_seq) return;
    const bytes = OVERHEAD_BYTES + Number(headers?.get("Nats-Msg-Size") ?? 0);
    yield { subject, sequence, bytes, holder: Buffer.from(headers?.get(HOLDER) ?? "", "base64url").toString() };
    if (pending === 0) return;
  }
  signal.throwIfAborted();
}

/** Asks whose something is once, as long as it is one of those that were met last: what has a holder keeps it. */
export function rememberingHolders(holderOf: HolderOf): HolderOf {
  const known = new BoundedMap<string, string>(KNOWN_HOLDERS);
  return async (subject) => {
    const holder = known.get(subject) ?? (await holderOf(subject));
    if (holder !== "") known.set(subject, holder);
    return holder;
  };
}

/** How much each holds. */
export async function bytesByHolder<T extends { bytes: number }>(
  sizes: AsyncIterable<T>,
  holderOf: (one: T) => string | Promise<string>,
): Promise<Map<string, number>> {
  const held = new Map<string, number>();
  for await (const one of sizes) {
    const holder = await holderOf(one);
    held.set(holder, (held.get(holder) ?? 0) + one.bytes);
  }
  return held;
}

/** The usage of a bucket whose values say whose they are; a value that an older release wrote is nobody's. */
export function usageByHeader(bus: Bus, { bucket }: { bucket: BucketName }) {
  const stream = `KV_${bucket}`;
  const measure = (signal: AbortSignal) => bytesByHolder(sizesOf(bus, stream, signal), ({ holder }) => holder);
  return { stream, measure };
}

export interface SessionUsageOptions {
  readonly stream: string;
  readonly prefix: string;
  /** Who opened a session; undefined for one that there is not, or not any more. */
  readonly findPrincipal: (sessionId: string) => Promise<string | undefined>;
}

/** The usage of sessions' principals, where the ids of sessions stand in subjects behind a prefix and before a dot. */
export function usageBySession(bus: Bus, { stream, prefix, findPrincipal }: SessionUsageOptions) {
  const holderOf = rememberingHolders(async (subject) => {
    const [sessionId = ""] = subject.startsWith(prefix) ? subject.slice(prefix.length).split(".") : [];
    return (sessionId && (await findPrincipal(sessionId))) ?? "";
  });
  const measure = (signal: AbortSignal) =>
    bytesByHolder(sizesOf(bus, stream, signal), ({ subject }) => holderOf(subject));
  return { stream, measure };
}

/** By how much each is over quota in a store. It takes more for small messages than was measured, so that all together may have less. */
export function excessIn({ bytes, targetBytes }: FillLevel, held: ReadonlyMap<string, number>): Map<string, number> {
  const measured = [...held.values()].reduce((sum, one) => sum + one, 0);
  return excessOf(held, targetBytes * Math.min(1, measured / bytes));
}

/** Of each holder that has more than all may have, how much that is, so that together they have no more than `target`. */
export function excessOf(held: ReadonlyMap<string, number>, target: number): Map<string, number> {
  let left = target;
  const ascending = [...held.entries()].sort(([, one], [, other]) => one - other);
  const excess = new Map<string, number>();
  for (const [index, [holder, bytes]] of ascending.entries()) {
    const level = left / (ascending.length - index);
    left -= Math.min(bytes, level);
    if (bytes > level) excess.set(holder, bytes - level);
  }
  return excess;
}
