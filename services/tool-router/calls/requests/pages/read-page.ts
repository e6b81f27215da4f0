import { ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { ListToolCallsRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { openPage, sizeOfPage } from "#runtime/rpc/paging/page.ts";
import { placeFromToken, tokenFromPlace } from "#runtime/rpc/paging/page-token.ts";
import type { CallRecord } from "../../records/record/call-record.ts";
import type { ListedCall } from "../../records/store.ts";

type Asked = Pick<ListToolCallsRequest, "sessionId" | "states" | "pageSize" | "pageToken">;

export function isAskedFor({ sessionId, state }: Pick<ListedCall, "sessionId" | "state">, asked: Asked): boolean {
  const { sessionId: only, states } = asked;
  return (only === "" || sessionId === only) && (states.length === 0 || states.includes(state));
}

/** A list of calls, of whose entries some may be of none that is shown. */
export interface CallList<T> {
  /** At most so many, behind a place. */
  entries(after: string, limit: number): Promise<readonly T[]>;
  placeOf(entry: T): string;
  /** The call; undefined when it is not shown. */
  read(entry: T): Promise<CallRecord | undefined>;
}

/** Each may be of 1 MiB. */
const READ_AT_ONCE = 32;

/** Reads the calls of a page that are asked for, until it is full. `of` names the list, and whose it is. */
export async function readPage<T>(
  of: readonly [string, string],
  asked: Asked,
  { entries, placeOf, read }: CallList<T>,
) {
  const list = [...of, asked.sessionId, asked.states.toSorted()];
  const limit = sizeOfPage(asked.pageSize);
  const found = await entries(placeFromToken(list, asked.pageToken), limit + 1); // by one more those behind the page are known
  const shown = found.slice(0, limit);
  const takes = openPage(ToolCallSchema);
  const calls: CallRecord[] = [];
  let count = 0;
  for (let isFull = false; !isFull && count < shown.length; ) {
    for (const call of await Promise.all(shown.slice(count, count + READ_AT_ONCE).map(read))) {
      const isWanted = call !== undefined && isAskedFor(call, asked);
      isFull = isWanted && !takes(call);
      if (isFull) break;
      count += 1;
      if (isWanted) calls.push(call);
    }
  }
  const last = found.length > count ? shown[count - 1] : undefined;
  return { calls, nextPageToken: tokenFromPlace(list, last === undefined ? "" : placeOf(last)) };
}
