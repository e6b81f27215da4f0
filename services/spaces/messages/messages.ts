/**
 * Messages of spaces. A message stands once under its id, however often it is sent. What is said reaches the inboxes of the other
 * agents in the space; calls that are shown reach no inbox.
 *
 * A list begins with the latest. Its `page_token` stays in place while messages arrive, and `skip` passes over so many. A watch
 * gives each event of the log once and in order; one from now on first says where it begins. A client that resumes behind its
 * last sequence misses and repeats nothing, on any instance. The log keeps 10,000 events of a space; a watch that asks for older
 * ones is told of the gap. How a call stands that is not over is told again before it is forgotten.
 */

import { create, equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ContentPart } from "#gen/toolbus/content/v1/content_pb.ts";
import {
  type Member,
  SpaceEventSchema,
  type SpaceMessage,
  SpaceMessageSchema,
  type TextMessage,
  TextMessageSchema,
  type ToolMessage,
} from "#gen/toolbus/space/v1/space_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { appendDecided, type SpaceLog } from "../space/space-log.ts";
import { messageOfEvent, type PageRequest, pageFromLatest } from "../space/space-state.ts";
import { decideToolMessage, idOfToolMessage } from "./tool-message.ts";

export type Messages = ReturnType<typeof createMessages>;

interface Said {
  spaceId: string;
  author: Member;
  content: ContentPart[];
  messageId: string;
}

/** What is said and shown in spaces. Whether a space exists is asked before. */
export function createMessages({ log, clock }: { log: SpaceLog; clock: Clock }) {
  const drafted = (spaceId: string, id: string, author: Member) =>
    create(SpaceMessageSchema, { id, spaceId, author, createTime: timestampFromMs(clock.now()) });

  return {
    /** Repeating it under the same id has no effect; an id that another author used, or for something else, is refused. */
    async send({ spaceId, author, content, messageId }: Said): Promise<SpaceMessage> {
      const outcome = await appendDecided<SpaceMessage>(log, spaceId, (state) => {
        const text = create(TextMessageSchema, { content });
        const known = state.messagesById.get(messageId);
        if (known) return { keep: sameMessage(known, author, text) };
        const message = drafted(spaceId, messageId, author);
        message.content = { case: "text", value: text };
        return { append: create(SpaceEventSchema, { event: { case: "messagePosted", value: message } }) };
      });
      return messageFrom(outcome);
    },
    async list(spaceId: string, page: PageRequest) {
      const { messages } = await log.read(spaceId);
      return { ...pageFromLatest(messages, page), total: messages.length };
    },
    /** Shows a call, or changes what is shown of it. Who shows it leaves room for its result: its end must fit, too. */
    async recordTool({ spaceId, author, tool }: Pick<Said, "spaceId" | "author"> & { tool: ToolMessage }) {
      const id = idOfToolMessage(tool.callId);
      const outcome = await appendDecided<SpaceMessage>(log, spaceId, (state) => {
        const shown = state.messagesById.get(id);
        if (shown) refuseOtherAgent(shown, author);
        return decideToolMessage(shown, tool, () => drafted(spaceId, id, author));
      });
      return messageFrom(outcome);
    },
    async findTool(spaceId: string, callId: string): Promise<SpaceMessage | undefined> {
      return (await log.read(spaceId)).messagesById.get(idOfToolMessage(callId));
    },
  };
}

function sameMessage(known: SpaceMessage, author: Member, text: TextMessage): SpaceMessage {
  const { content, id } = known;
  const isOwn = known.author?.id === author.id;
  if (isOwn && content.case === "text" && equals(TextMessageSchema, content.value, text)) return known;
  const fault = isOwn ? "says something else: say this under another id" : "is by somebody else";
  return refuse("already_exists", `message ${id} ${fault}`, { reason: "MESSAGE_ID_REUSED" });
}

function refuseOtherAgent({ author: caller, id }: SpaceMessage, author: Member): void {
  if (caller?.sessionId === author.sessionId && caller.name === author.name) return;
  refuse("permission_denied", `message ${id} shows a call of another agent`, { reason: "MESSAGE_ID_REUSED" });
}

function messageFrom(outcome: Awaited<ReturnType<typeof appendDecided<SpaceMessage>>>): SpaceMessage {
  if ("kept" in outcome) return outcome.kept;
  return (
    messageOfEvent(outcome.appended) ??
    refuse("internal", "the log lost the message of an event", { reason: "RECORD_LOST" })
  );
}
