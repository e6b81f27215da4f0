import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { isForPeople } from "#runtime/content/questions.ts";
import { Empty, Fault } from "../parts/notice.tsx";
import { place } from "../parts/place.ts";
import { Screen, Section } from "../parts/screen.tsx";
import { wordFrom } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";
import { Answered } from "./card/answered.tsx";
import { WaitingCall } from "./waiting-call.tsx";
import { inboxMs, listWaitingCalls } from "./waiting-calls.ts";

/** What waits for people, and for programs; or one call alone, by its link. */
export function InboxScreen() {
  const { id } = place.value;
  return id === "" ? <AllWaiting /> : <OneWaiting callId={id} />;
}

function AllWaiting() {
  const { value, fault, again } = usePolled("inbox", (signal) => listWaitingCalls(signal), inboxMs);
  const people = value?.filter(isForPeople) ?? [];
  const programs = value?.filter((call) => !isForPeople(call)) ?? [];
  return (
    <Screen title="Inbox" aside={value && <span class="quiet">{people.length} for you</span>}>
      <Fault text={fault} />
      <Answered />
      {value && people.length === 0 && <Empty>Nothing waits for you. What does appears here by itself.</Empty>}
      <Cards calls={people} again={again} />
      {programs.length > 0 && (
        <Section title="Waits for programs">
          <Cards calls={programs} again={again} />
        </Section>
      )}
    </Screen>
  );
}

function Cards({ calls, again }: { calls: readonly ToolCall[]; again: () => void }) {
  return (
    <div class="cards">
      {calls.map((call) => (
        <WaitingCall key={call.callId} call={call} onAnswered={again} />
      ))}
    </div>
  );
}

const open: readonly ToolCallState[] = [ToolCallState.WAITING, ToolCallState.PENDING];

function OneWaiting({ callId }: { callId: string }) {
  const { value, fault, again } = usePolled(
    callId,
    async (signal) => (await clientOf(ToolCallService).getToolCall({ callId }, { signal })).call,
    inboxMs,
  );
  return (
    <Screen title="A question">
      <Fault text={fault} />
      <Answered of={(call) => call.callId === callId} />
      {value && open.includes(value.state) && <WaitingCall key={callId} call={value} onAnswered={again} />}
      {value && !open.includes(value.state) && (
        <Empty>
          {value.tool} is {wordFrom(ToolCallState, value.state)}: nothing is left to answer.
        </Empty>
      )}
    </Screen>
  );
}
