import { computed } from "@preact/signals";
import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { isForPeople } from "#runtime/content/questions.ts";
import { msOf } from "../parts/words.ts";
import { clientOf, noteAnswer, personalSignal } from "../suite/connection.ts";

/** How often it is asked what waits, in ms: the contract has no watch of it. */
export const inboxMs = 2_000;

/** What waits for people, as the frame around the screens asked last. */
export const waitingForPeople = personalSignal<readonly ToolCall[]>([]);

/** Since when each run that waits for a person does, in ms of the clock. */
export const waitingRuns = computed(() => {
  const sinceMs = new Map<string, number>();
  for (const { runId, createTime } of waitingForPeople.value) {
    const since = msOf(createTime) ?? 0;
    if (runId !== "") sinceMs.set(runId, Math.min(since, sinceMs.get(runId) ?? since));
  }
  return sinceMs;
});

/** Asks anew what waits for people. */
export async function askWaiting(signal: AbortSignal): Promise<void> {
  waitingForPeople.value = (await listWaitingCalls(signal)).filter(isForPeople);
}

/** Calls that somebody outside of the suite is to answer; all of them, or of one session. */
export async function listWaitingCalls(signal: AbortSignal, sessionId = ""): Promise<ToolCall[]> {
  const states = [ToolCallState.WAITING, ToolCallState.PENDING];
  const calls: ToolCall[] = [];
  let pageToken = "";
  do {
    const page = await clientOf(ToolCallService).listToolCalls(
      { sessionId, states, pageSize: 1_000, pageToken },
      { signal },
    );
    noteAnswer(); // on a slow way, all of them take long
    calls.push(...page.calls);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return calls;
}
