import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { CALLER_PROVIDER } from "../../../tools/tool-set/offer.ts";
import type { ToolEntry } from "../../../tools/tool-set/tool-set.ts";

/** When a call's time is over, how long that was at its start, and whose time it is. */
export interface Deadline {
  readonly at: number;
  readonly timeoutMs: number;
  readonly of?: string;
  /** Where progress begins the time anew (MCP): when it is over all the same. */
  readonly latestAt?: number;
}

/** What a request says of its time. */
export interface AskedTime {
  /** Of a run: its own end. */
  readonly deadline: number | undefined;
  readonly isOfRun: boolean;
}

const DEFAULT_MS = 30_000;
const CALLER_DEFAULT_MS = 60_000;
/** Progress makes a call no longer than so many times its time. */
const MOST_TIMES = 10;

/** A person has as long as the run; where that has no end, no longer than this. */
const PERSON_MS = 7 * 24 * 3_600_000;

/**
 * KIND-4: the tool's own timeout wins over the default of its kind, and the run's deadline caps both. A request outside a run
 * that says its time gives it to a tool that says none where that is of MCP, which knows no time of tools, or answered by a person;
 * to a person, a run gives its time as well.
 */
export function decideDeadline(entry: ToolEntry, now: number, { deadline, isOfRun }: AskedTime): Deadline {
  const isMcp = entry.tool.executionType === ExecutionType.MCP;
  const isPerson = entry.tool.executionType === ExecutionType.SPACE;
  const ownMs = msFromDuration(entry.tool.timeout);
  const askedMs = deadline === undefined ? undefined : Math.max(0, deadline - now);
  const asker = isOfRun ? "the run's" : "the request's";
  const isAsked = ownMs === undefined && askedMs !== undefined && (isPerson || (isMcp && !isOfRun));
  const wantedMs = isAsked ? askedMs : (ownMs ?? (isPerson && isOfRun ? PERSON_MS : defaultMs(entry)));
  const timeoutMs = Math.min(wantedMs, askedMs ?? wantedMs);
  const isCapped = isAsked || timeoutMs < wantedMs;
  const of = isCapped ? asker : ownMs === undefined ? "the default" : "the tool's";
  const latestMs = Math.min(timeoutMs * MOST_TIMES, askedMs ?? Number.POSITIVE_INFINITY);
  return { at: now + timeoutMs, timeoutMs, of, ...(isMcp && latestMs > timeoutMs && { latestAt: now + latestMs }) };
}

function defaultMs({ executor }: ToolEntry): number {
  const isCaller = executor.kind === "provider" && executor.provider === CALLER_PROVIDER;
  return isCaller ? CALLER_DEFAULT_MS : DEFAULT_MS;
}
