import type { Bus } from "../bus.ts";
import { retryOnBus } from "../link/link.ts";

/*
 * A store has room while it is filled to less than three quarters: nobody is asked to leave, and nobody is refused. Above that, room is made
 * until it is at 70 %.
 */

export const HIGH_MARK = 0.75;
export const LOW_MARK = 0.7;
/** Where room is made, whoever holds the most is refused only from here on: what may go has gone by then. */
export const CROWDED_MARK = 0.85;
/** How long until it is looked again. */
export const PAUSE_MS = 10_000;

export interface Fill {
  /** How much of the stream is filled, of 1. */
  readonly part: number;
  readonly bytes: number;
  /** How many bytes it holds once room is made. */
  readonly targetBytes: number;
}

export async function fillOf(bus: Bus, stream: string): Promise<Fill> {
  const ask = () => bus.manager.streams.info(stream);
  const { state, config } = await retryOnBus(bus.link, ask, { what: `measuring the room of ${stream}` });
  const { bytes } = state;
  return { part: bytes / config.max_bytes, bytes, targetBytes: LOW_MARK * config.max_bytes };
}
