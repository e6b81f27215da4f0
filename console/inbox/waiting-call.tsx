import { useRef } from "preact/hooks";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { isForPeople, questionOf } from "#runtime/content/questions.ts";
import { randomName } from "../../sdk/typescript/client/connection.ts";
import { SchemaForm } from "../parts/form/schema-form.tsx";
import { Fault } from "../parts/notice.tsx";
import { linkTo } from "../parts/place.ts";
import { TextBlock } from "../parts/text-block.tsx";
import { clockOf, durationOf, msOf, prettyJson } from "../parts/words.ts";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";

/** A call that waits, with what answers it. */
export function WaitingCall({ call, onAnswered }: { call: ToolCall; onAnswered: () => void }) {
  const { isBusy, fault, run } = useActing();
  const submissionId = useRef(randomName());
  const { message, url, schemaJson } = questionOf(call);
  const isQuestion = call.question !== undefined;
  const answer = async (outcome: Outcome) => {
    if (await run(() => submit(call, submissionId.current, outcome))) onAnswered();
  };
  const respond = (action: string, contentJson = "") =>
    answer({ case: "resultJson", value: `{"action":"${action}"${contentJson && `,"content":${contentJson}`}}` });
  return (
    <article class="card" aria-label={`${call.tool} waits`}>
      <header>
        <a href={linkTo("inbox", call.callId)}>
          <strong>{call.tool}</strong>
        </a>
        <span class="quiet">
          {call.agent} · since {clockOf(msOf(call.createTime))}
          {timeLeft(call)}
        </span>
        {call.runId && (
          <a class="quiet" href={linkTo("runs", call.runId)}>
            run
          </a>
        )}
      </header>
      {message && <p>{message}</p>}
      {url && <OpenUrl url={url} />}
      {!isQuestion && call.argumentsJson !== "{}" && <TextBlock label="asked" text={prettyJson(call.argumentsJson)} />}
      {isForPeople(call) ? (
        <>
          {url ? (
            <button type="button" class="main" disabled={isBusy} onClick={() => respond("accept")}>
              done
            </button>
          ) : (
            <SchemaForm
              schemaJson={schemaJson}
              submitLabel="answer"
              isBusy={isBusy}
              onAnswer={(json) => (isQuestion ? respond("accept", json) : answer({ case: "resultJson", value: json }))}
            />
          )}
          <button
            type="button"
            disabled={isBusy}
            onClick={() =>
              isQuestion ? respond("decline") : answer({ case: "error", value: "a person declined in the console" })
            }
          >
            decline
          </button>
        </>
      ) : (
        <p class="quiet">
          A program that watches for {call.tool} answers it
          {call.taken ? ": one has taken it" : "; none has taken it yet"}.
        </p>
      )}
      <Fault text={fault} />
    </article>
  );
}

type Outcome = { case: "resultJson"; value: string } | { case: "error"; value: string };

async function submit(call: ToolCall, submissionId: string, outcome: Outcome): Promise<void> {
  const { callId, spaceId } = call;
  if (call.question === undefined && call.executionType === ExecutionType.SPACE)
    await clientOf(SpaceService).answerToolCall({ spaceId, callId, submissionId, outcome });
  else await clientOf(ToolCallService).submitToolResult({ callId, submissionId, outcome });
}

function timeLeft({ expireTime }: ToolCall): string {
  const end = msOf(expireTime);
  return end === undefined ? "" : ` · ${durationOf(Math.max(0, end - Date.now()))} left`;
}

/** Only what a browser opens as a page: a server could ask for anything. */
function OpenUrl({ url }: { url: string }) {
  if (!/^https?:\/\//.test(url)) return <p class="fault">It asks to open {url}, which is no address of a page.</p>;
  return (
    <p>
      <a href={url} target="_blank" rel="noopener noreferrer">
        {url}
      </a>
    </p>
  );
}
