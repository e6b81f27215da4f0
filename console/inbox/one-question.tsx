import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { Empty } from "../parts/notice.tsx";
import { linkTo, replaceAddress } from "../parts/place.ts";
import { Screen } from "../parts/screen.tsx";
import { clientOf, heldKey } from "../suite/connection.ts";
import { leave } from "../suite/login/login.ts";
import { usePolled } from "../suite/polled.ts";
import { WaitingCall } from "./waiting-call.tsx";
import { inboxMs } from "./waiting-calls.ts";

/** All that somebody is shown who has a key of one call: its question, until it is answered. */
export function OneQuestion() {
  const over = useSignal<string>();
  const callId = callOfKey();
  useEffect(() => {
    replaceAddress(linkTo("inbox", callId));
    document.title = "A question · toolbus";
  }, [callId]);
  const away = (
    <button type="button" onClick={leave}>
      leave
    </button>
  );
  return (
    <Screen title="A question" actions={away}>
      {over.value === undefined ? (
        <Asked
          callId={callId}
          onOver={(text) => {
            over.value = text;
          }}
        />
      ) : (
        <Empty>{over.value}</Empty>
      )}
    </Screen>
  );
}

/** What a key of one call says of itself: who has it may read that. Empty for one that was cut off, which the suite refuses. */
function callOfKey(): string {
  const [, , payload = ""] = heldKey().split(".");
  try {
    return JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/"))).call;
  } catch {
    return "";
  }
}

/** Asks for the question as long as it is one: what is refused once is refused from then on. */
function Asked({ callId, onOver }: { callId: string; onOver: (text: string) => void }) {
  const { value, fault } = usePolled(
    callId,
    async (signal) => (await clientOf(ToolCallService).getToolCall({ callId }, { signal })).call,
    inboxMs,
  );
  useEffect(() => {
    if (fault !== undefined) onOver(`Nothing is left to answer here: ${fault}.`);
  }, [fault]);
  return value ? (
    <WaitingCall
      call={value}
      onAnswered={(kind) => onOver(`${kind === "answered" ? "Answered" : "Declined"}. You can close this page.`)}
    />
  ) : null;
}
