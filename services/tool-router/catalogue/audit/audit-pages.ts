import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { AuditEvent } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { AuditFilter } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import type { FollowAudit } from "#runtime/audit/trail.ts";
import type { LogUpdate } from "#runtime/rpc/watching/log-update.ts";

/** The audit trail, read. */
export interface AuditReader {
  follow(options: FollowAudit): AsyncIterable<LogUpdate<AuditEvent>>;
  /** One in whose line of JSON a word is lacking may be told by its place alone. */
  backwards(beforeSequence: number, signal: AbortSignal, words: readonly string[]): AsyncIterable<AuditEvent>;
  /** The sequence of the first event that was stored at a time or after it. */
  sequenceSince(time: Date, signal: AbortSignal): Promise<number>;
}

export type MayRead = (event: AuditEvent) => boolean | Promise<boolean>;

export interface PageRequest {
  /** Absent for an caller who may read everything. */
  mayRead?: MayRead | undefined;
  filter: AuditFilter | undefined;
  pageSize: number;
  /** The page begins before this sequence; 0 for the latest. */
  beforeSequence: number;
}

export interface Page {
  events: AuditEvent[];
  /** The next page begins before this sequence; 0 at the end. */
  nextBefore: number;
}

/** The most events that one page reads: a page that finds little is short or empty, and says where to go on. */
const MAX_SCANNED = 10_000;

export async function readPage(audit: AuditReader, request: PageRequest, signal: AbortSignal): Promise<Page> {
  const { filter, pageSize, beforeSequence, mayRead } = request;
  const first = await firstWanted(audit, filter, signal);
  const events: AuditEvent[] = [];
  let scanned = 0;
  for await (const event of audit.backwards(beforeSequence, signal, wordsOf(filter))) {
    if (event.sequence < first) break;
    if (events.length === pageSize || scanned === MAX_SCANNED)
      return { events, nextBefore: Number(event.sequence) + 1 };
    scanned += 1;
    if (!isWanted(event, filter)) continue;
    if (!mayRead || (await mayRead(event))) events.push(event);
  }
  return { events, nextBefore: 0 };
}

export type WatchRequest = Pick<PageRequest, "filter" | "mayRead"> & { fromSequence: bigint | undefined };

/** Events from a sequence on, but none from before the filter's time, with which a watch begins that names no sequence. */
export async function* watchFrom(
  audit: AuditReader,
  { filter, fromSequence, mayRead }: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<LogUpdate<AuditEvent>> {
  const notBefore = await firstWanted(audit, filter, signal);
  const from = fromSequence ?? (filter?.startTime && 0n);
  for await (const update of audit.follow({ from, notBefore, words: wordsOf(filter), signal })) {
    if (update.case !== "event") yield update;
    else if (isWanted(update.value, filter) && (!mayRead || (await mayRead(update.value)))) yield update;
  }
}

async function firstWanted(audit: AuditReader, filter: AuditFilter | undefined, signal: AbortSignal): Promise<number> {
  return filter?.startTime === undefined ? 0 : audit.sequenceSince(timestampDate(filter.startTime), signal);
}

/** The fields of a filter that an event has, too; an empty one leaves every event in. */
const NAMES = ["agent", "sessionId", "runId", "tool", "service", "principal"] as const;

/** What stands in the line of every event that is wanted. */
function wordsOf(filter: AuditFilter | undefined): string[] {
  if (filter === undefined) return [];
  return NAMES.map((name) => filter[name])
    .filter((text) => text !== "")
    .map((text) => JSON.stringify(text));
}

function isWanted(event: AuditEvent, filter: AuditFilter | undefined): boolean {
  if (filter === undefined) return true;
  const isOfKind = filter.kinds.length === 0 || filter.kinds.includes(event.kind);
  return isOfKind && NAMES.every((name) => filter[name] === "" || filter[name] === event[name]);
}
