import { computed } from "@preact/signals";
import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { isForPeople } from "#runtime/content/questions.ts";
import { msOf } from "../parts/words.ts";
import { clientOf, noteAnswer, personalSignal } from "../suite/connection.ts";

/** How often it is asked what waits, in ms: a watch of calls takes them from those who watch beside it. */
export const inboxMs = 2_000;

/** What waits for people and programs, as the frame asked last for all screens; undefined until it is known. */
export const waitingCalls = personalSignal<readonly ToolCall[] | undefined>(undefined);

export const waitingForPeople = computed(() => waitingCalls.value?.filter(isForPeople) ?? []);

/** Since when each run that waits for a person does, in ms of the clock. */
export const waitingRuns = computed(() => {
  const sinceMs = new Map<string, number>();
  for (const { runId, createTime } of waitingForPeople.value) {
    const since = msOf(createTime) ?? 0;
    if (runId !== "") sinceMs.set(runId, Math.min(since, sinceMs.get(runId) ?? since));
  }
  return sinceMs;
});

/** Calls that were answered here since it was asked last. */
const answeredIds = new Set<string>();

/** Asks which calls somebody outside of the suite is to answer. */
export async function askWaiting(signal: AbortSignal): Promise<void> {
  answeredIds.clear();
  const states = [ToolCallState.WAITING, ToolCallState.PENDING];
  const calls: ToolCall[] = [];
  let pageToken = "";
  do {
    const page = await clientOf(ToolCallService).listToolCalls({ states, pageSize: 1_000, pageToken }, { signal });
    noteAnswer(); // on a slow way, all of them take long
    calls.push(...page.calls);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  waitingCalls.value = calls.filter(({ callId }) => !answeredIds.has(callId));
}

/** Answered here, so that it is none of them before they are asked for again. */
export function noteOver({ callId }: ToolCall): void {
  answeredIds.add(callId);
  waitingCalls.value = waitingCalls.value?.filter((call) => call.callId !== callId);
}
