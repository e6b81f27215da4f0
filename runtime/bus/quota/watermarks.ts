import type { Bus } from "../bus.ts";
import { retryOnBus } from "../link/link.ts";

/*
 * A store has room while it is filled to less than three quarters: nothing is evicted, and nobody is refused. Above that, messages are
 * evicted until it is at 70 %.
 */

export const HIGH_WATERMARK = 0.75;
export const LOW_WATERMARK = 0.7;
/** Where messages are evicted, whoever is over quota is refused only from here on: what may be evicted is gone by then. */
export const REFUSAL_WATERMARK = 0.85;
/** How long until the fill level is measured again. */
export const PAUSE_MS = 10_000;

export interface FillLevel {
  /** How much of the stream is filled, of 1. */
  readonly part: number;
  readonly bytes: number;
  /** How many bytes it holds after eviction. */
  readonly targetBytes: number;
}

export async function fillLevelOf(bus: Bus, stream: string): Promise<FillLevel> {
  const ask = () => bus.manager.streams.info(stream);
  const { state, config } = await retryOnBus(bus.link, ask, { what: `measuring the room of ${stream}` });
  const { bytes } = state;
  return { part: bytes / config.max_bytes, bytes, targetBytes: LOW_WATERMARK * config.max_bytes };
}
