import type { Bus } from "../bus.ts";

/** Gives a store so many bytes, as one that is nearly full has them left. */
export async function shrinkStore(bus: Bus, stream: string, maxBytes: number): Promise<void> {
  const { config } = await bus.manager.streams.info(stream);
  await bus.manager.streams.update(stream, { ...config, max_bytes: maxBytes });
}
