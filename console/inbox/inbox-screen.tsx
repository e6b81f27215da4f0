import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { isForPeople } from "#runtime/content/questions.ts";
import { Empty, Fault } from "../parts/notice.tsx";
import { place } from "../parts/place.ts";
import { Screen } from "../parts/screen.tsx";
import { wordFrom } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";
import { Answered } from "./card/answered.tsx";
import { Cards } from "./cards.tsx";
import { inboxMs, waitingCalls, waitingForPeople } from "./waiting-calls.ts";

/** What waits for people, and for programs; or one call alone, by its link. */
export function InboxScreen() {
  const { id } = place.value;
  return id === "" ? <AllWaiting /> : <OneWaiting key={id} callId={id} />;
}

function AllWaiting() {
  const [all, people] = [waitingCalls.value, waitingForPeople.value];
  return (
    <Screen title="Inbox" aside={all && <span class="quiet">{people.length} for you</span>}>
      <Answered />
      {all && people.length === 0 && <Empty>Nothing waits for you. What does appears here by itself.</Empty>}
      <Cards calls={people} />
      <Cards title="Waits for programs" calls={all?.filter((call) => !isForPeople(call)) ?? []} />
    </Screen>
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
      <Cards calls={value && open.includes(value.state) ? [value] : []} onAnswered={again} />
      {value && !open.includes(value.state) && (
        <Empty>
          {value.tool} is {wordFrom(ToolCallState, value.state)}: nothing is left to answer.
        </Empty>
      )}
    </Screen>
  );
}
