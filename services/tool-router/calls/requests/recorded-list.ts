import type { ListToolCallsRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { isShownTo } from "../records/owners.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { isOpen, isTombstone } from "../records/record/states.ts";
import type { CallStore, CallsPart, OpenCall } from "../records/store.ts";
import { isAskedFor, readPage } from "./read-page.ts";

/** A page of the recorded calls, in the order of their ids. Where open ones alone are asked for, it costs what it holds. */
export async function listRecorded(
  { list, listOpen, read }: Pick<CallStore, "list" | "listOpen" | "read">,
  request: ListToolCallsRequest,
  { caller, session, signal }: { caller: Caller; session: CallsPart["session"]; signal: AbortSignal },
) {
  const { principal } = caller;
  const { states } = request;
  const areOpen = states.length > 0 && states.every((state) => isOpen({ state }));
  const isShown = (call: OpenCall) => !isTombstone(call) && isShownTo(call, caller);
  const all = async () => (await Array.fromAsync(list(signal, { session, principal }))).map(({ value }) => value);
  return readPage(["calls", principal ?? ""], request, {
    async entries(after, limit) {
      const calls: Iterable<OpenCall | CallRecord> = areOpen ? await listOpen(signal) : await all();
      return Array.from(calls)
        .filter((call) => call.callId > after && isAskedFor(call, request) && isShown(call))
        .sort((one, other) => (one.callId < other.callId ? -1 : 1))
        .slice(0, limit);
    },
    placeOf: ({ callId }) => callId,
    async read(entry) {
      const call = "argumentsJson" in entry ? entry : await read(entry.callId);
      return call && isShown(call) ? call : undefined;
    },
  });
}
