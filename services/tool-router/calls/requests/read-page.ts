import { ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { ListToolCallsRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { openPage } from "#runtime/rpc/paging/page.ts";
import { type ListName, tokenFromPlace } from "#runtime/rpc/paging/page-token.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import type { OpenCall } from "../records/store.ts";

export function isAskedFor({ sessionId, state }: OpenCall, request: ListToolCallsRequest): boolean {
  const { states } = request;
  return (
    (request.sessionId === "" || sessionId === request.sessionId) && (states.length === 0 || states.includes(state))
  );
}

/** A page of at most so many entries, of whose calls some may be gone. Those behind it are told by one entry more. */
export interface EntriesPage<T> {
  readonly entries: readonly T[];
  readonly limit: number;
  placeOf(entry: T): string;
  /** The call; undefined when it is not shown. */
  read(entry: T): Promise<CallRecord | undefined>;
}

/** Each may be of 1 MiB. */
const READ_AT_ONCE = 32;

/** Reads the calls of a page, until it is full. */
export async function readPage<T>(list: ListName, { entries, limit, placeOf, read }: EntriesPage<T>) {
  const shown = entries.slice(0, limit);
  const takes = openPage(ToolCallSchema);
  const calls: CallRecord[] = [];
  let count = 0;
  for (let isFull = false; !isFull && count < shown.length; ) {
    for (const call of await Promise.all(shown.slice(count, count + READ_AT_ONCE).map(read))) {
      isFull = call !== undefined && !takes(call);
      if (isFull) break;
      count += 1;
      if (call) calls.push(call);
    }
  }
  const last = entries.length > count ? shown[count - 1] : undefined;
  return { calls, nextPageToken: tokenFromPlace(list, last === undefined ? "" : placeOf(last)) };
}
