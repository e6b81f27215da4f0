import { create } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { type SpaceMessage, type ToolMessage, ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { type ToolCall, ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { randomName } from "../../sdk/typescript/client/connection.ts";
import { type AnswerCall, answeringOf, PlainQuestion } from "../inbox/waiting-call.tsx";
import { Badge, Fault, type Tone } from "../parts/notice.tsx";
import { linkTo } from "../parts/place.ts";
import { prettyJson } from "../parts/text/pretty-json.ts";
import { LongText, TextBlock } from "../parts/text-block.tsx";
import { clockOf, msOf, textOf, wordFrom } from "../parts/words.ts";
import { resultText } from "../runs/timeline/item-text.ts";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";
import { useFollowed } from "../suite/live.ts";
import { AgentMemory, keeperFrom } from "./agent-memory.tsx";
import { followSpace } from "./followed-space.ts";

export function SpaceView({ spaceId }: { spaceId: string }) {
  const { model, fault } = useFollowed(spaceId, () => followSpace(spaceId));
  const { messages, members, earlierCount } = model;
  const listing = useActing();
  return (
    <div class="detail">
      <h2>{spaceId}</h2>
      <p class="quiet">{[...new Set([...members.values()].map(({ name }) => name))].join(", ")}</p>
      {[...members.values()].map(({ id, name }) => {
        const keeper = keeperFrom(id);
        return keeper && <AgentMemory key={id} name={name} keeper={keeper} />;
      })}
      <Fault text={fault ?? listing.fault} />
      {earlierCount > 0 && (
        <button type="button" disabled={listing.isBusy} onClick={() => listing.run(model.earlier)}>
          earlier messages ({earlierCount.toLocaleString()})
        </button>
      )}
      <ol class="messages">
        {messages.map((message) => (
          <li key={message.id}>
            <header>
              <strong>{message.author?.name}</strong> <time class="quiet">{clockOf(msOf(message.createTime))}</time>
            </header>
            {message.content.case === "text" && <LongText text={textOf(message.content.value.content)} />}
            {message.content.case === "tool" && <ToolCard message={message} tool={message.content.value} />}
          </li>
        ))}
      </ol>
      <SendForm spaceId={spaceId} />
    </div>
  );
}

const tones: Readonly<Record<number, Tone>> = {
  [ToolMessageState.RUNNING]: "busy",
  [ToolMessageState.REQUIRES_ACTION]: "wait",
  [ToolMessageState.COMPLETE]: "good",
  [ToolMessageState.ERROR]: "bad",
};

function ToolCard({ message, tool }: { message: SpaceMessage; tool: ToolMessage }) {
  const { isBusy, fault, run } = useActing();
  const submissionId = useSignal(randomName());
  const isAsking = tool.state === ToolMessageState.REQUIRES_ACTION;
  const answer: AnswerCall = (outcome) =>
    run(() =>
      clientOf(SpaceService).answerToolCall({
        spaceId: message.spaceId,
        callId: tool.callId,
        submissionId: submissionId.value,
        outcome,
      }),
    );
  const call = callOf(tool);
  const result = resultText(tool.result);
  return (
    <article class="card" aria-label={`${tool.tool} in the space`}>
      <header>
        <Badge tone={tones[tool.state] ?? "quiet"}>{wordFrom(ToolMessageState, tool.state)}</Badge>
        <strong>{tool.tool}</strong>
        {tool.runId && (
          <a class="quiet" href={linkTo("runs", tool.runId)}>
            run
          </a>
        )}
      </header>
      {!isAsking && tool.argumentsJson !== "" && tool.argumentsJson !== "{}" && (
        <TextBlock
          label={tool.argumentsIncomplete ? "is being written" : "asked"}
          text={prettyJson(tool.argumentsJson)}
        />
      )}
      {isAsking && <PlainQuestion call={call} answering={answeringOf(call, answer)} isBusy={isBusy} />}
      {result && <TextBlock label="answered" text={prettyJson(result)} />}
      <Fault text={fault} />
    </article>
  );
}

/** What a space tells of a call, as the call that waits: servers ask under the name that MCP has for it. */
function callOf({ tool, argumentsJson, outputSchemaJson }: ToolMessage): ToolCall {
  const question = tool === "elicitation/create" ? { question: {} } : {};
  const asked = { tool, argumentsJson: argumentsJson || "{}", outputSchemaJson };
  return create(ToolCallSchema, { ...asked, ...question, executionType: ExecutionType.SPACE });
}

function SendForm({ spaceId }: { spaceId: string }) {
  const { isBusy, fault, run } = useActing();
  const text = useSignal("");
  const messageId = useMemo(randomName, [text.value]); // what is sent again is the same message, with other words another one
  const send = async (event: Event) => {
    event.preventDefault();
    const content = [{ part: { case: "text", value: text.value } as const }];
    const isSent = await run(() => clientOf(SpaceService).sendMessage({ spaceId, content, messageId }));
    if (!isSent) return;
    text.value = "";
  };
  return (
    <form class="form" onSubmit={send}>
      <div class="field">
        <label for="space-text">Say something here</label>
        <textarea
          id="space-text"
          rows={2}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
      </div>
      <Fault text={fault} />
      <button type="submit" disabled={isBusy || text.value === ""}>
        send
      </button>
    </form>
  );
}
