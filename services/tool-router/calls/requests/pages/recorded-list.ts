import type { ListToolCallsRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { firstKeys } from "#runtime/rpc/paging/first-keys.ts";
import { isShownTo } from "../../records/owners.ts";
import type { CallStore, ListedCall } from "../../records/store.ts";
import { isAskedFor, readPage } from "./read-page.ts";

/** A page of the recorded calls, in the order of their ids. It reads those that it shows. */
export async function listRecorded(
  { list, read }: Pick<CallStore, "list" | "read">,
  request: ListToolCallsRequest,
  { caller, signal }: { caller: Caller; signal: AbortSignal },
) {
  return readPage(["calls", caller.principal ?? ""], request, {
    async entries(after, limit) {
      const where = (call: ListedCall) => isAskedFor(call, request) && isShownTo(call, caller);
      return firstKeys(await list(signal), { where, after, limit });
    },
    placeOf: (callId) => callId,
    async read(callId) {
      const call = await read(callId);
      return call && isShownTo(call, caller) ? call : undefined;
    },
  });
}
