import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { isAt, linkTo } from "../../parts/place.ts";
import { clockOf } from "../../parts/words.ts";
import { personalSignal } from "../../suite/connection.ts";

export type AnswerKind = "answered" | "declined";

interface AnsweredCall {
  readonly call: ToolCall;
  readonly kind: AnswerKind;
  readonly atMs: number;
}

/** How many are kept in sight. */
const keptAnswers = 5;

/** What was answered in this page, latest first: what waited is gone from the list, and what came of it is to be seen. */
const answered = personalSignal<readonly AnsweredCall[]>([]);

export function noteAnswered(call: ToolCall, kind: AnswerKind): void {
  answered.value = [{ call, kind, atMs: Date.now() }, ...answered.value].slice(0, keptAnswers);
}

/** Lines for what was answered here, of all calls or of those that are meant. */
export function Answered({ of = () => true }: { of?: (call: ToolCall) => boolean }) {
  return (
    <div aria-live="polite">
      {answered.value
        .filter(({ call }) => of(call))
        .map(({ call, kind, atMs }) => (
          <p key={call.callId}>
            <strong>{kind}</strong> · {call.tool} · {clockOf(atMs)}
            {call.runId && !isAt("runs", call.runId) && (
              <>
                {" "}
                · <a href={linkTo("runs", call.runId)}>run {call.runId}</a>
              </>
            )}
          </p>
        ))}
    </div>
  );
}
