import { createHash, randomUUID } from "node:crypto";

/**
 * Names one handing over of one call: after the watcher's token a name of its own, and a seal of both with the call, by which
 * every router tells an id that was given out for the call from one that was made up or belongs to another call.
 */
export function createDeliveryId(token: string, callId: string): string {
  const stem = `${token}.${randomUUID()}`;
  return `${stem}-${sealOf(stem, callId)}`;
}

/** The token of the watcher to which this delivery went; empty for no delivery. */
export function watcherOf(deliveryId: string): string {
  return deliveryId.slice(0, Math.max(0, deliveryId.indexOf(".")));
}

export function isDeliveryOf(deliveryId: string, callId: string): boolean {
  const at = deliveryId.lastIndexOf("-");
  return at > 0 && deliveryId.slice(at + 1) === sealOf(deliveryId.slice(0, at), callId);
}

function sealOf(stem: string, callId: string): string {
  return createHash("sha256").update(`${stem} ${callId}`).digest("hex").slice(0, 16);
}
