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
import { clientOf, hasCallKey } from "../suite/connection.ts";
import type { ComponentQuestion } from "./component/contract.ts";
import { DrawnQuestion } from "./component/drawn-question.tsx";
import { LinkForOthers } from "./link-for-others.tsx";

/** A call that waits, with what answers it. */
export function WaitingCall({ call, onAnswered }: { call: ToolCall; onAnswered: () => void }) {
  const { isBusy, fault, run } = useActing();
  const submissionId = useRef(randomName());
  const answer = async (outcome: Outcome) => {
    const isTaken = await run(() => submit(call, submissionId.current, outcome));
    if (isTaken) onAnswered();
    return isTaken;
  };
  const answering = answeringOf(call, answer);
  const plain = <PlainQuestion call={call} answering={answering} isBusy={isBusy} />;
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
        {call.runId && !hasCallKey() && (
          <a class="quiet" href={linkTo("runs", call.runId)}>
            run
          </a>
        )}
      </header>
      {isForPeople(call) && questionOf(call).url === "" ? (
        <DrawnQuestion question={componentQuestionOf(call, answering)}>{plain}</DrawnQuestion>
      ) : (
        plain
      )}
      <Fault text={fault} />
      {isForPeople(call) && !hasCallKey() && (
        <details>
          <summary>let somebody else answer</summary>
          <LinkForOthers callId={call.callId} />
        </details>
      )}
    </article>
  );
}

interface Answering {
  /** With the answer as JSON text. */
  accept(json: string): Promise<boolean>;
  decline(reason?: string): Promise<boolean>;
}

/** What a server asks is answered with what became of it beside the content. */
function answeringOf(call: ToolCall, answer: (outcome: Outcome) => Promise<boolean>): Answering {
  const result = (value: string) => answer({ case: "resultJson", value });
  if (call.question !== undefined)
    return {
      accept: (json) => result(`{"action":"accept"${json && `,"content":${json}`}}`),
      decline: () => result('{"action":"decline"}'),
    };
  return {
    accept: result,
    decline: (reason) => answer({ case: "error", value: reason || "a person declined in the console" }),
  };
}

interface PlainQuestionProps {
  call: ToolCall;
  answering: Answering;
  isBusy: boolean;
}

/** What is asked, in words and as JSON, with a form from the schema. */
function PlainQuestion({ call, answering, isBusy }: PlainQuestionProps) {
  const { message, url, schemaJson } = questionOf(call);
  const isQuestion = call.question !== undefined;
  return (
    <>
      {message && <p>{message}</p>}
      {url && <OpenUrl url={url} />}
      {!isQuestion && call.argumentsJson !== "{}" && <TextBlock label="asked" text={prettyJson(call.argumentsJson)} />}
      {isForPeople(call) ? (
        <>
          {url ? (
            <button type="button" class="main" disabled={isBusy} onClick={() => answering.accept("")}>
              done
            </button>
          ) : (
            <SchemaForm
              schemaJson={schemaJson}
              submitLabel="answer"
              isBusy={isBusy}
              onAnswer={(json) => answering.accept(json)}
            />
          )}
          <button type="button" disabled={isBusy} onClick={() => answering.decline()}>
            decline
          </button>
        </>
      ) : (
        <p class="quiet">
          A program that watches for {call.tool} answers it
          {call.taken ? ": one has taken it" : "; none has taken it yet"}.
        </p>
      )}
    </>
  );
}

function componentQuestionOf(call: ToolCall, { accept, decline }: Answering): ComponentQuestion {
  const { callId, tool, agent } = call;
  const { message, schemaJson } = questionOf(call);
  return {
    ...{ callId, tool, agent, message, decline },
    arguments: (parsed(call.argumentsJson) ?? {}) as Record<string, unknown>,
    schema: parsed(schemaJson),
    answer: async (value) => accept(JSON.stringify(value) ?? "null"),
  };
}

/** Undefined for what is no JSON: a component draws what it can. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

type Outcome = { case: "resultJson"; value: string } | { case: "error"; value: string };

async function submit(call: ToolCall, submissionId: string, outcome: Outcome): Promise<void> {
  const { callId, spaceId } = call;
  if (call.question === undefined && call.executionType === ExecutionType.SPACE && !hasCallKey())
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
