import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Member,
  SpaceEventSchema,
  type SpaceMessage,
  SpaceMessageSchema,
  type ToolMessage,
} from "#gen/toolbus/space/v1/space_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { appendDecided, type SpaceLog } from "./space-log.ts";
import { messageOfEvent, pageFromLatest } from "./space-state.ts";
import { decideToolMessage, idOfToolMessage } from "./tool-message.ts";

export interface Page {
  messages: SpaceMessage[];
  total: number;
}

/** What is said and shown in spaces. Whether a space exists is asked before. */
export interface Messages {
  /** Repeating it under the same id has no effect; an id that another author used is refused. */
  send(said: { spaceId: string; author: Member; text: string; messageId: string }): Promise<SpaceMessage>;
  list(spaceId: string, page: { offset: number; limit: number }): Promise<Page>;
  /** Shows a call, or changes what is shown of it. */
  recordTool(shown: { spaceId: string; author: Member; tool: ToolMessage }): Promise<SpaceMessage>;
  findTool(spaceId: string, callId: string): Promise<SpaceMessage | undefined>;
}

export function createMessages({ log, clock }: { log: SpaceLog; clock: Clock }): Messages {
  const drafted = (spaceId: string, id: string, author: Member) =>
    create(SpaceMessageSchema, { id, spaceId, author, time: timestampFromMs(clock.now()) });

  return {
    async send({ spaceId, author, text, messageId }) {
      const outcome = await appendDecided<SpaceMessage>(log, spaceId, (state) => {
        const known = state.messagesById.get(messageId);
        if (known) return { keep: ofSameAuthor(known, author) };
        const message = drafted(spaceId, messageId, author);
        message.content = { case: "text", value: { $typeName: "toolbus.space.v1.TextMessage", text } };
        return { append: create(SpaceEventSchema, { event: { case: "messagePosted", value: message } }) };
      });
      return messageFrom(outcome);
    },
    async list(spaceId, { offset, limit }) {
      const { messages } = await log.read(spaceId);
      return { messages: pageFromLatest(messages, offset, limit), total: messages.length };
    },
    async recordTool({ spaceId, author, tool }) {
      const id = idOfToolMessage(tool.callId);
      const outcome = await appendDecided<SpaceMessage>(log, spaceId, (state) => {
        const decision = decideToolMessage(state.messagesById.get(id), tool, () => drafted(spaceId, id, author));
        return decision.kind === "same" ? { keep: decision.message } : { append: decision.event };
      });
      return messageFrom(outcome);
    },
    async findTool(spaceId, callId) {
      return (await log.read(spaceId)).messagesById.get(idOfToolMessage(callId));
    },
  };
}

function ofSameAuthor(known: SpaceMessage, author: Member): SpaceMessage {
  if (known.author?.id === author.id) return known;
  return refuse("already_exists", `message ${known.id} is by somebody else`);
}

function messageFrom(outcome: Awaited<ReturnType<typeof appendDecided<SpaceMessage>>>): SpaceMessage {
  if ("kept" in outcome) return outcome.kept;
  return messageOfEvent(outcome.appended) ?? refuse("internal", "the log lost the message of an event");
}
