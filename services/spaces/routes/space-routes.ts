import { randomUUID } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Member } from "#gen/toolbus/space/v1/space_pb.ts";
import type { SendMessageRequest, SpaceService } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import type { Answers } from "../answers.ts";
import { agentMember, type Membership, memberOf, personMember } from "../membership.ts";
import type { Messages } from "../messages.ts";
import type { SpaceLog } from "../space-log.ts";

export interface SpaceParts {
  membership: Membership;
  messages: Messages;
  answers: Answers;
  log: SpaceLog;
  /** Ends watches when the service stops. */
  stopping: AbortSignal;
}

const pageSize = 50;

export function spaceRoutes(parts: SpaceParts): ServiceImpl<typeof SpaceService> {
  const { membership, messages, answers, log, stopping } = parts;
  return {
    async createSpace(request) {
      return { space: await membership.createSpace(request.spaceId || randomUUID(), request.title) };
    },
    async getSpace(request) {
      return { space: await membership.space(request.spaceId) };
    },
    async listSpaces() {
      return { spaces: await membership.spaces() };
    },
    async enterSpace(request) {
      const space = await membership.enter(request.spaceId, agentMember(request.sessionId, request.agent));
      const page = await messages.list(space.id, { offset: 0, limit: pageSize });
      return { space, messages: page.messages };
    },
    async leaveSpace(request) {
      return { spaceId: (await membership.leave(request.sessionId)) ?? "" };
    },
    async getActiveSpace(request) {
      return { spaceId: (await membership.activeSpace(request.sessionId)) ?? "" };
    },
    async sendMessage(request, context) {
      const author = await authorOf(membership, request, principalOf(context.requestHeader));
      const { spaceId, text } = request;
      return { message: await messages.send({ spaceId, author, text, messageId: request.messageId || randomUUID() }) };
    },
    async listMessages(request) {
      await membership.space(request.spaceId);
      return messages.list(request.spaceId, { offset: request.offset, limit: request.limit || pageSize });
    },
    async *watchSpace(request, context) {
      await membership.space(request.spaceId);
      const ends = AbortSignal.any([context.signal, stopping]);
      for await (const event of log.follow(request.spaceId, request.fromSequence, ends)) yield { event };
      if (stopping.aborted) refuse("unavailable", "this instance stops: watch again from the last sequence");
    },
    async recordToolMessage(request) {
      const { spaceId } = request;
      await membership.space(spaceId);
      const tool = request.message ?? refuse("invalid_argument", "message: is required");
      if (tool.callId === "") refuse("invalid_argument", "message.call_id: is required");
      const author = agentMember(request.sessionId, request.agent);
      return { message: await messages.recordTool({ spaceId, author, tool }) };
    },
    async answerToolCall(request) {
      await membership.space(request.spaceId);
      return { message: await answers.answer(request.spaceId, request) };
    },
  };
}

/** An agent speaks where it is a member; a person becomes one by speaking. */
async function authorOf(membership: Membership, request: SendMessageRequest, principal: string): Promise<Member> {
  const space = await membership.space(request.spaceId);
  if (request.sessionId !== "") {
    const member = memberOf(space, agentMember(request.sessionId, "").id);
    return member ?? refuse("failed_precondition", `session ${request.sessionId} is not in space "${space.id}"`);
  }
  const person = personMember(principal, request.authorName);
  await membership.join(space.id, person);
  return person;
}
