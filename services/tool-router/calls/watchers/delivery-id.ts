import { createHmac, type KeyObject, randomUUID, timingSafeEqual } from "node:crypto";
import type { WatcherFacts } from "./ports.ts";

/**
 * Names one handing over of one call: after the watcher's token a name of its own, and a seal of both with the call and the principal,
 * made with the key that all routers share (SEC-2). So every router tells an id that was given to the principal for the call from one
 * that was made up, belongs to another call, or was given to somebody else.
 */
export class DeliveryIds {
  readonly #key: KeyObject;

  constructor(key: KeyObject) {
    this.#key = key;
  }

  create({ token, principal }: Pick<WatcherFacts, "token" | "principal">, callId: string): string {
    const stem = `${token}.${randomUUID()}`;
    return `${stem}-${this.#sealOf(stem, callId, principal)}`;
  }

  isFor(deliveryId: string, callId: string, principal: string): boolean {
    const at = deliveryId.lastIndexOf("-");
    const given = Buffer.from(deliveryId.slice(at + 1));
    const seal = Buffer.from(this.#sealOf(deliveryId.slice(0, Math.max(0, at)), callId, principal));
    return given.length === seal.length && timingSafeEqual(given, seal);
  }

  #sealOf(stem: string, callId: string, principal: string): string {
    return createHmac("sha256", this.#key)
      .update(JSON.stringify([stem, callId, principal]))
      .digest("hex")
      .slice(0, 32);
  }
}

/** The token of the watcher to which this delivery went; empty for no delivery. */
export function watcherOf(deliveryId: string): string {
  return deliveryId.slice(0, Math.max(0, deliveryId.indexOf(".")));
}
