import { msFromDuration } from "#runtime/time/duration.ts";
import { CALLER_PROVIDER } from "../../tools/tool-set/offer.ts";
import type { ToolEntry } from "../../tools/tool-set/tool-set.ts";

/** When a call's time is over, and how long that was at its start. */
export interface Deadline {
  readonly at: number;
  readonly timeoutMs: number;
}

const DEFAULT_MS = 30_000;
const CALLER_DEFAULT_MS = 60_000;

/** KIND-4: the tool's own timeout wins over the default of its kind, and the run's deadline caps both. */
export function decideDeadline(entry: ToolEntry, now: number, runDeadline: number | undefined): Deadline {
  const { executor, tool } = entry;
  const isCaller = executor.kind === "provider" && executor.provider === CALLER_PROVIDER;
  const ownMs = msFromDuration(tool.timeout) ?? (isCaller ? CALLER_DEFAULT_MS : DEFAULT_MS);
  const timeoutMs = runDeadline === undefined ? ownMs : Math.max(0, Math.min(ownMs, runDeadline - now));
  return { at: now + timeoutMs, timeoutMs };
}
