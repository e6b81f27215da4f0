import type { ListToolCallsRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { sizeOfPage } from "#runtime/rpc/paging/page.ts";
import { type ListName, placeFromToken } from "#runtime/rpc/paging/page-token.ts";
import { isShownTo } from "../records/owners.ts";
import { isOpen } from "../records/record/states.ts";
import type { CallStore } from "../records/store.ts";
import { readPage } from "./read-page.ts";

/** Whether no other calls than open ones are asked for. */
export function asksForOpen({ states }: ListToolCallsRequest): boolean {
  return states.length > 0 && states.every((state) => isOpen({ state }));
}

/** The open calls, by pages that cost what they hold. */
export async function listOpenCalls(
  store: Pick<CallStore, "listOpen" | "read">,
  request: ListToolCallsRequest & { readonly list: ListName },
  caller: Caller,
  signal: AbortSignal,
) {
  const { list, sessionId, states, pageToken } = request;
  const after = placeFromToken(list, pageToken);
  const limit = sizeOfPage(request.pageSize);
  const open = Array.from(await store.listOpen(signal)).filter(
    (call) => call.callId > after && (sessionId === "" || call.sessionId === sessionId) && isShownTo(call, caller),
  );
  const callIds = open.map(({ callId }) => callId).toSorted();
  return readPage(list, {
    entries: callIds.slice(0, limit + 1),
    limit,
    placeOf: (callId) => callId,
    async read(callId) {
      const call = await store.read(callId);
      return call && states.includes(call.state) && isShownTo(call, caller) ? call : undefined;
    },
  });
}
