import { createHash } from "node:crypto";
import type { Bus } from "./bus.ts";

/** Keeps results that are too large for a message, under their digest; gives the reference. */
export function createResultStore(bus: Bus): (outputJson: string) => Promise<string> {
  return async (outputJson) => {
    const bytes = Buffer.from(outputJson);
    const name = `sha256-${createHash("sha256").update(bytes).digest("hex")}`;
    const results = await bus.objectStore("toolbus_results");
    if ((await results.info(name)) === null) await results.putBlob({ name }, bytes);
    return name;
  };
}
