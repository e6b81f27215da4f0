import type { Bus } from "#runtime/bus/bus.ts";
import { excessOf, sizesOf, targetOf } from "./fair-share.ts";

const STREAM = "TOOLBUS_INBOX";
const PREFIX = "toolbus.inbox.";

/**
 * The principals for whose sessions no further event is stored, as room is short and theirs hold the most. What waits is never removed.
 * `principalOf` gives undefined for a session that is gone.
 */
export async function findCrowding(
  bus: Bus,
  principalOf: (sessionId: string) => Promise<string | undefined>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const target = await targetOf(bus, STREAM);
  if (target === undefined) return new Set();
  const bytesBySession = new Map<string, number>();
  for await (const { subject, bytes } of sizesOf(bus, STREAM, signal)) {
    const sessionId = subject.slice(PREFIX.length);
    bytesBySession.set(sessionId, (bytesBySession.get(sessionId) ?? 0) + bytes);
  }
  const bytesByPrincipal = new Map<string, number>();
  for (const [sessionId, bytes] of bytesBySession) {
    const principal = (await principalOf(sessionId)) ?? "";
    bytesByPrincipal.set(principal, (bytesByPrincipal.get(principal) ?? 0) + bytes);
  }
  return new Set(excessOf(bytesByPrincipal, target).keys());
}
