import { randomUUID } from "node:crypto";
import type { ConnectRouter } from "@connectrpc/connect";
import { ToolCallService, type WatchNotice } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { callerOf, principalOf } from "#runtime/rpc/identity.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { CallStore } from "../calls/records/store.ts";
import type { Acknowledgements } from "../calls/requests/acknowledgements.ts";
import type { Answerers } from "../calls/requests/answerers.ts";
import type { CallKeys } from "../calls/requests/call-keys.ts";
import type { Cancellation } from "../calls/requests/cancellation.ts";
import { refuseUnknown } from "../calls/requests/open.ts";
import { listRecorded } from "../calls/requests/pages/recorded-list.ts";
import type { Results } from "../calls/requests/results.ts";
import type { Submissions } from "../calls/requests/submissions.ts";
import type { Tasks } from "../calls/requests/tasks.ts";
import type { Dispatcher } from "../calls/watchers/dispatcher.ts";
import { noticesOf } from "../calls/watchers/notices.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { tokenFrom } from "../subscriptions/watchers/subject-token.ts";

export interface RecordRoutes {
  store: CallStore;
  submissions: Submissions;
  results: Results;
  acknowledgements: Acknowledgements;
  answerers: Answerers;
  callKeys: CallKeys;
  cancellation: Cancellation;
  tasks: Tasks;
  ownership: SessionOwners;
  dispatcher: Dispatcher;
  catalogue: Pick<Catalogue, "tools" | "caughtUp" | "requireTool">;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

const IN_FLIGHT = 64;

export function routeRecords(router: ConnectRouter, routes: RecordRoutes): void {
  const { store, submissions, results, acknowledgements, answerers, callKeys, cancellation, tasks } = routes;
  const { ownership, dispatcher, catalogue, stopping } = routes;

  /** What seems to lack may have been applied a moment ago. */
  async function currentNotices(tools: readonly string[]): Promise<WatchNotice[]> {
    if (noticesOf(tools, catalogue.tools).length === 0) return [];
    await catalogue.caughtUp();
    return noticesOf(tools, catalogue.tools);
  }

  router.service(ToolCallService, {
    async *watchToolCalls({ tools, watcherId, maxInFlight }, context) {
      const { signal } = context;
      using ending = openEnding(signal, stopping);
      const caller = callerOf(context);
      const principal = principalOf(caller);
      const token = tokenFrom(principal, watcherId || randomUUID());
      for (const tool of tools) await catalogue.requireTool(tool, caller);
      const notices = await currentNotices(tools);
      for (const notice of notices) yield { update: { case: "notice", value: notice } };
      const watch = { token, principal, tools, limit: maxInFlight || IN_FLIGHT };
      for await (const { withdrawn, ...delivery } of dispatcher.watch(watch, ending.signal))
        yield { update: { case: withdrawn ? "withdrawn" : "call", value: delivery } };
    },
    async acknowledgeToolCall(request, context) {
      return { call: await acknowledgements.acknowledge(request, principalOf(callerOf(context))) };
    },
    async submitToolResult(request, context) {
      const caller = callerOf(context);
      const by = { caller, principal: principalOf(caller), signal: context.signal };
      return { call: await submissions.submit(request, by) };
    },
    async getToolCall({ callId }, context) {
      const call = (await store.read(callId)) ?? refuseUnknown(callId);
      await answerers.requireReader(call, callerOf(context));
      return { call };
    },
    async listToolCalls(request, context) {
      const { sessionId, onlyTasks } = request;
      const { signal } = context;
      const caller = callerOf(context);
      await ownership.requireSession(sessionId, caller);
      if (onlyTasks) return tasks.list(request, caller, signal);
      return listRecorded(store, request, { caller, signal });
    },
    async *readResult(request, context) {
      for await (const part of results.read(request, callerOf(context), context.signal)) yield { part };
    },
    createCallKey: (request, context) => callKeys.create(request, callerOf(context)),
    async cancelToolCall(request, context) {
      return { started: await cancellation.cancel(request, callerOf(context)) };
    },
  });
}
