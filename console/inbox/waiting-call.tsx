import { useRef } from "preact/hooks";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { isForPeople, questionOf } from "#runtime/content/questions.ts";
import { randomName } from "../../sdk/typescript/client/connection.ts";
import { SchemaForm } from "../parts/form/schema-form.tsx";
import { Fault } from "../parts/notice.tsx";
import { isAt, linkTo } from "../parts/place.ts";
import { LongText } from "../parts/text-block.tsx";
import { clockOf, msOf } from "../parts/words.ts";
import { useActing } from "../suite/acting.ts";
import { clientOf, hasCallKey, sameUser } from "../suite/connection.ts";
import { type AnswerKind, noteAnswered } from "./card/answered.tsx";
import { AskedArguments } from "./card/asked-arguments.tsx";
import { AskedWhom, expiryText } from "./card/asked-whom.tsx";
import { Declinable } from "./card/declinable.tsx";
import { LinkForOthers } from "./card/link-for-others.tsx";
import type { ComponentQuestion } from "./component/contract.ts";
import { DrawnQuestion } from "./component/drawn-question.tsx";
import { noteOver } from "./waiting-calls.ts";

/** A call that waits, with what answers it. */
export function WaitingCall({ call, onAnswered }: { call: ToolCall; onAnswered: (kind: AnswerKind) => void }) {
  const { isBusy, fault, run } = useActing();
  const submissionId = useRef(randomName());
  const answer = async (outcome: Outcome, kind: AnswerKind) => {
    const isSameUser = sameUser();
    const isTaken = await run(() => submit(call, submissionId.current, outcome));
    if (isTaken) {
      if (isSameUser()) {
        noteAnswered(call, kind);
        noteOver(call);
      }
      onAnswered(kind);
    }
    return isTaken;
  };
  const answering = answeringOf(call, answer);
  const plain = <PlainQuestion call={call} answering={answering} isBusy={isBusy} />;
  return (
    <article class="card" aria-label={`${call.tool} waits`}>
      <header>
        {isAt("inbox", call.callId) ? (
          <strong>{call.tool}</strong>
        ) : (
          <a href={linkTo("inbox", call.callId)}>
            <strong>{call.tool}</strong>
          </a>
        )}
        <span class="quiet">
          {askedBy(call)}
          {call.agent} · since {clockOf(msOf(call.createTime))}
          {expiryText(call)}
        </span>
        {call.runId && !hasCallKey() && !isAt("runs", call.runId) && (
          <a class="quiet" href={linkTo("runs", call.runId)}>
            run
          </a>
        )}
      </header>
      {call.spaceId !== "" && !hasCallKey() && <AskedWhom spaceId={call.spaceId} />}
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

/** The tool whose server asks, as the suite has it: a name that the server gives itself is none. */
function askedBy({ question, argumentsJson }: ToolCall): string {
  const { tool } = (question && (parsed(argumentsJson) as Record<string, unknown> | undefined)) ?? {};
  return typeof tool === "string" ? `asked by ${tool} · ` : "";
}

export type AnswerCall = (outcome: Outcome, kind: AnswerKind) => Promise<boolean>;

interface Answering {
  /** With the answer as JSON text. */
  accept(json: string): Promise<boolean>;
  decline(reason?: string): Promise<boolean>;
}

/** What a server asks is answered with what became of it beside the content. */
export function answeringOf(call: ToolCall, answer: AnswerCall): Answering {
  const result = (value: string, kind: AnswerKind = "answered") => answer({ case: "resultJson", value }, kind);
  if (call.question !== undefined)
    return {
      accept: (json) => result(`{"action":"accept"${json && `,"content":${json}`}}`),
      decline: () => result('{"action":"decline"}', "declined"),
    };
  return {
    accept: (json) => result(json),
    decline: (reason) => answer({ case: "error", value: declinedText(reason) }, "declined"),
  };
}

function declinedText(reason = ""): string {
  return reason === "" ? "a person declined in the console" : `a person declined in the console: ${reason}`;
}

interface PlainQuestionProps {
  call: ToolCall;
  answering: Answering;
  isBusy: boolean;
}

/** What is asked, in words and as JSON, with a form from the schema. */
export function PlainQuestion({ call, answering, isBusy }: PlainQuestionProps) {
  const { message, url, schemaJson } = questionOf(call);
  const isQuestion = call.question !== undefined;
  return (
    <>
      {message && <LongText text={message} />}
      {url && <OpenUrl url={url} />}
      {!isQuestion && call.argumentsJson !== "{}" && <AskedArguments json={call.argumentsJson} />}
      {isForPeople(call) ? (
        <Declinable
          told={isQuestion ? "the server is told so" : "the agent is told that nobody will answer this"}
          hasReason={!isQuestion}
          isBusy={isBusy}
          onDecline={(reason) => answering.decline(reason)}
        >
          {(beside) =>
            url ? (
              <div class="buttons">
                <button type="button" class="main" disabled={isBusy} onClick={() => answering.accept("")}>
                  done
                </button>
                {beside}
              </div>
            ) : (
              <SchemaForm
                schemaJson={schemaJson}
                submitLabel="answer"
                isBusy={isBusy}
                onAnswer={(json) => answering.accept(json)}
                beside={beside}
              />
            )
          }
        </Declinable>
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
