import { randomUUID } from "node:crypto";
import type { ConnectRouter } from "@connectrpc/connect";
import { ToolCallService } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import type { Cancellation } from "../cancellation.ts";
import { openEnding } from "../ending.ts";
import type { CallStore } from "../record.ts";
import { pageOf } from "../sessions.ts";
import type { Submissions } from "../submissions.ts";
import { tokenFrom } from "../subscriptions/subject-token.ts";
import type { Acknowledgements } from "../watch/acknowledgements.ts";
import type { Desk } from "../watch/desk.ts";

export interface RecordRoutes {
  store: CallStore;
  submissions: Submissions;
  acknowledgements: Acknowledgements;
  cancellation: Cancellation;
  desk: Desk;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

const IN_FLIGHT = 64;

export function routeRecords(router: ConnectRouter, routes: RecordRoutes): void {
  const { store, submissions, acknowledgements, cancellation, desk, stopping } = routes;
  router.service(ToolCallService, {
    async *watchToolCalls({ tools, watcherId, maxInFlight }, { signal, requestHeader }) {
      using ending = openEnding(signal, stopping);
      const token = tokenFrom(principalOf(requestHeader), watcherId || randomUUID());
      yield* desk.watch({ token, tools, limit: maxInFlight || IN_FLIGHT }, ending.signal);
    },
    async acknowledgeToolCall(request, { requestHeader }) {
      return { call: await acknowledgements.acknowledge(request, principalOf(requestHeader)) };
    },
    async submitToolResult(request, { requestHeader }) {
      return { call: await submissions.submit(request, principalOf(requestHeader)) };
    },
    async getToolCall({ callId }) {
      const missing = `there is no call ${callId}`;
      return { call: (await store.read(callId)) ?? refuse("not_found", missing, { reason: "CALL_UNKNOWN" }) };
    },
    async listToolCalls({ sessionId, states, pageSize, pageToken }, { signal }) {
      const wanted = async function* () {
        for await (const stored of store.list(signal)) {
          const { value } = stored;
          const isOfSession = sessionId === "" || value.sessionId === sessionId;
          if (isOfSession && (states.length === 0 || states.includes(value.state))) yield stored;
        }
      };
      const { items, nextPageToken } = await pageOf(wanted(), pageSize || 100, pageToken);
      return { calls: items, nextPageToken };
    },
    async cancelToolCall(request) {
      return { started: await cancellation.cancel(request) };
    },
  });
}
