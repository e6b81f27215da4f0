import { useSignal } from "@preact/signals";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Section } from "../parts/screen.tsx";
import { WaitingCall } from "./waiting-call.tsx";

interface CardsProps {
  title?: string;
  calls: readonly ToolCall[];
  onAnswered?: () => void;
}

/** Calls that wait. Of one that waits no more, what somebody has begun to write stays until it is put away. */
export function Cards({ title, calls, onAnswered }: CardsProps) {
  const begun = useSignal<ReadonlyMap<string, ToolCall>>(new Map());
  const leave = ({ callId }: ToolCall) => {
    begun.value = new Map([...begun.value].filter(([id]) => id !== callId));
  };
  const waits = new Set(calls.map(({ callId }) => callId));
  const shown = [...calls, ...[...begun.value.values()].filter(({ callId }) => !waits.has(callId))];
  if (shown.length === 0) return null;
  const cards = (
    <div class="cards">
      {shown
        .sort((one, other) => (one.callId < other.callId ? -1 : 1))
        .map((call) => (
          <div
            key={call.callId}
            onInput={() => {
              begun.value = new Map(begun.value).set(call.callId, call);
            }}
          >
            {!waits.has(call.callId) && (
              <p class="hint" role="alert">
                It waits no more: somebody else has answered it, or it has ended.{" "}
                <button type="button" class="small" onClick={() => leave(call)}>
                  put away
                </button>
              </p>
            )}
            <WaitingCall
              call={call}
              onAnswered={() => {
                leave(call);
                onAnswered?.();
              }}
            />
          </div>
        ))}
    </div>
  );
  return title === undefined ? cards : <Section title={title}>{cards}</Section>;
}
