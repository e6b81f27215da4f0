import { openPeriodic } from "../../../lifecycle/background.ts";
import type { Bus } from "../../bus.ts";
import { ownerEntries } from "./entry.ts";
import { keyFromToken } from "./names.ts";
import type { Ping } from "./ping.ts";

export interface SweepingOptions {
  bus: Bus;
  kind: string;
  ping: Ping;
  isHeld: (key: string) => boolean;
  onError: (error: unknown) => void;
  intervalMs?: number;
}

/** Removes the entries of owners that are gone, so that keys nobody asks for again do not fill the bucket. */
export function openSweeping({ intervalMs = 45_000, onError, ...options }: SweepingOptions): AsyncDisposable {
  return openPeriodic({ everyMs: intervalMs, work: (signal) => sweepOnce(options, signal), onError });
}

/** Looks at each entry of the kind once. */
export async function sweepOnce(
  options: Omit<SweepingOptions, "onError" | "intervalMs">,
  signal: AbortSignal,
): Promise<void> {
  const entries = ownerEntries(options.bus, options.kind);
  for (const token of await entries.keys(signal)) {
    signal.throwIfAborted();
    const key = keyFromToken(token);
    if (options.isHeld(key)) continue;
    const entry = await entries.read(token, signal);
    if (entry === undefined) continue;
    if ((await options.ping(key, entry, signal)) === "gone") await entries.remove(token, entry.revision);
  }
}
