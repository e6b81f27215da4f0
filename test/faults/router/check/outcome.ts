import { ToolCallState as State, type ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { until } from "#runtime/time/until.ts";
import { retryRequest } from "../../retry-request.ts";
import type { Witness } from "../load/witness.ts";
import { agentName } from "../setting.ts";
import type { World } from "../world.ts";
import type { RouterHistory, StandingRecord } from "./history.ts";

/** How long what is under way may take to its end, once no router is struck any more. */
const settleMs = 60_000;

const states: Partial<Record<State, StandingRecord["state"]>> = {
  [State.STARTED]: "started",
  [State.RESOLVED]: "resolved",
  [State.EXPIRED]: "expired",
  [State.CANCELED]: "canceled",
};

/**
 * Waits until every submission has been answered, every call is resolved, and the inbox has what came late. What has not
 * come in that time is judged as it stands.
 */
export async function settled(world: World, witness: Witness, ordered: { submissions: number }): Promise<void> {
  const calls = [...witness.calls.values()];
  const heard = () => calls.reduce((sum, { submissions }) => sum + submissions.length, 0) >= ordered.submissions;
  const isSettled = async () => {
    if (!heard()) return false;
    const [records, inbox] = [await readRecords(world), await readInbox(world)];
    return calls.every(({ callId }) => {
      const record = records.get(callId);
      return record?.state === State.RESOLVED && (!record.resolvedLate || inbox.has(callId));
    });
  };
  await until(isSettled, { timeoutMs: settleMs, intervalMs: 2_000 }).catch(() => {}); // the check says what is missing
}

/** Everything that was witnessed, with what stands. */
export async function readOutcome(world: World, witness: Witness): Promise<RouterHistory> {
  const [records, inbox] = [await readRecords(world), await readInbox(world)];
  const calls = [...witness.calls.values()].map((call) => {
    const record = records.get(call.callId);
    return { ...call, record: record && standingFrom(record), inbox: inbox.get(call.callId) ?? [] };
  });
  return { calls, strikes: witness.strikes, endedStreams: witness.endedStreams };
}

function standingFrom({ state, result, resolvedLate }: ToolCall): StandingRecord {
  const { outputJson = "null", isError = false } = result ?? {};
  return { state: states[state] ?? "open", outputJson, isError, isLate: resolvedLate };
}

async function readRecords({ clients }: World): Promise<Map<string, ToolCall>> {
  const page = (pageToken: string) =>
    retryRequest(() => clients.calls.listToolCalls({ pageToken }), performance.now() + settleMs);
  const calls = (await allPages(page)).flatMap((one) => one.calls);
  return new Map(calls.map((call) => [call.callId, call]));
}

async function readInbox({ clients, sessionIds }: World): Promise<Map<string, string[]>> {
  const results = new Map<string, string[]>();
  for (const sessionId of sessionIds) {
    const request = { sessionId, agent: agentName };
    const page = (pageToken: string) =>
      retryRequest(() => clients.inbox.listInboxEvents({ ...request, pageToken }), performance.now() + settleMs);
    for (const { eventId, event } of (await allPages(page)).flatMap(({ events }) => events)) {
      if (event.case !== "toolResult") continue;
      const callId = eventId.replace(/^tr:/, "");
      results.set(callId, [...(results.get(callId) ?? []), event.value.result?.outputJson ?? ""]);
    }
  }
  return results;
}
