import { randomUUID } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Grants } from "#gen/toolbus/access/v1/access_pb.ts";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { ContentPart } from "#gen/toolbus/content/v1/content_pb.ts";
import type { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { type Member, type Space, SpaceSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import type { ListMessagesRequest, SendMessageRequest, SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { type Audit, auditAct } from "#runtime/audit/trail.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { readableSubmissionFrom } from "#runtime/results/submission.ts";
import { type Caller, callerOf, principalOf, takerOf } from "#runtime/rpc/identity.ts";
import { openPage, pageOf, sizeOfPage } from "#runtime/rpc/paging/page.ts";
import { placeFromToken, tokenFromPlace } from "#runtime/rpc/paging/page-token.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Answers } from "../messages/answers.ts";
import type { Messages } from "../messages/messages.ts";
import type { Sessions } from "../owners/sessions.ts";
import { agentMember, memberOf, personMember } from "../space/member.ts";
import type { Membership } from "../space/membership.ts";
import type { SpaceAccess } from "../space/space-access.ts";
import type { SpaceLog } from "../space/space-log.ts";

export interface SpaceParts {
  membership: Membership;
  access: SpaceAccess;
  messages: Messages;
  answers: Answers;
  sessions: Sessions;
  log: SpaceLog;
  audit: Audit;
  /** Ends watches when the service stops, with what their clients are told. */
  stopping: AbortSignal;
}

/** How many messages who enters a space is told. */
const LATEST = 50;

export function spaceRoutes(parts: SpaceParts): ServiceImpl<typeof SpaceService> {
  const { membership, access, messages, answers, sessions, log, stopping } = parts;
  const auditGrants = (id: string, grants: Grants | undefined, caller: Caller) => {
    const whom = grants ? [...grants.principals, "its creator"].join(", ") : "whoever may use what has no grants";
    auditAct(parts.audit, caller, { kind: AuditKind.CONFIGURED }, `space ${id} was granted to ${whom}`);
  };

  return {
    async createSpace({ spaceId, title, grants }, context) {
      const id = spaceId || randomUUID();
      const caller = callerOf(context);
      const { isNew } = await membership.createSpace({ id, title, grants, principal: caller.principal ?? "" });
      if (isNew) auditGrants(id, grants, caller);
      return { space: await access.require(id, caller) };
    },
    async setSpaceGrants({ spaceId, grants }, context) {
      const caller = callerOf(context);
      const space = caller.isOperator ? await membership.space(spaceId) : await access.require(spaceId, caller);
      access.requireGrantor(space, caller);
      const changed = await membership.setGrants(spaceId, grants);
      auditGrants(spaceId, grants, caller);
      return { space: changed };
    },
    async getSpace(request, context) {
      return { space: await access.require(request.spaceId, callerOf(context)) };
    },
    async listSpaces(request, context) {
      const elements = await access.list(callerOf(context));
      const listed = { elements, placeOf: ({ id }: Space) => id, takes: openPage(SpaceSchema) };
      const { items, nextPageToken } = pageOf(["spaces"], listed, request);
      return { spaces: items, nextPageToken };
    },
    async enterSpace({ spaceId, member }, context) {
      const caller = callerOf(context);
      const agent = member.case === "agent" ? await sessions.ownerFor(member.value, caller) : undefined;
      await access.require(spaceId, caller);
      const space = agent
        ? await membership.enter(spaceId, agent)
        : await membership.join(spaceId, personMember(principalOf(caller), String(member.value ?? "")));
      const page = await messages.list(space.id, { offset: 0, limit: LATEST, before: 0n });
      return { space, messages: page.messages };
    },
    async leaveSpace({ spaceId, member }, context) {
      const caller = callerOf(context);
      const agent = member.case === "agent" ? await sessions.ownerFor(member.value, caller) : undefined;
      const { id } = await membership.space(spaceId, () => false); // whoever it is not for any more may leave it
      if (agent !== undefined) return { left: await membership.leave(id, agent) };
      return { left: await membership.part(id, principalOf(caller)) };
    },
    async getActiveSpace(request, context) {
      const owner = await sessions.ownerFor(request, callerOf(context));
      return { spaceId: (await membership.activeSpace(owner)) ?? "" };
    },
    async sendMessage(request, context) {
      const author = await authorOf(parts, request, callerOf(context));
      const { spaceId } = request;
      const content = validContent(request.content);
      return {
        message: await messages.send({ spaceId, author, content, messageId: request.messageId || randomUUID() }),
      };
    },
    async listMessages(request, context) {
      await access.require(request.spaceId, callerOf(context));
      return pageOfMessages(messages, request);
    },
    async *watchSpace({ spaceId, fromSequence }, context) {
      const requireNow = requiredAgain(() => access.require(spaceId, callerOf(context)));
      await requireNow();
      using ending = openEnding(context.signal, stopping);
      for await (const update of log.follow(spaceId, fromSequence, ending.signal)) {
        await requireNow();
        yield { update };
      }
      stopping.throwIfAborted();
    },
    async answerToolCall(request, context) {
      const space = await access.require(request.spaceId, callerOf(context));
      const principal = principalOf(callerOf(context));
      const by = memberOf(space, principal) ?? personMember(principal, "");
      const { callId } = request;
      const answer = { callId, ...(await readableSubmissionFrom(request, callId, takerOf(context))), by };
      return await answers.answer(request.spaceId, answer);
    },
  };
}

/** A page of a space's messages, latest first: its token is the position before which the next one begins. */
async function pageOfMessages(
  messages: Pick<Messages, "list">,
  { spaceId, pageSize, pageToken, skip }: ListMessagesRequest,
) {
  const list = ["messages", spaceId];
  const page = { offset: skip, limit: sizeOfPage(pageSize), before: BigInt(placeFromToken(list, pageToken) || 0) };
  const { messages: listed, total, before } = await messages.list(spaceId, page);
  const nextPageToken = tokenFromPlace(list, before === 0n ? "" : String(before));
  return { messages: listed.toReversed(), totalSize: total, nextPageToken };
}

/** How other services show visible calls. */
export function toolMessageRoutes(parts: SpaceParts): ServiceImpl<typeof ToolMessageService> {
  const { access, messages, sessions } = parts;
  return {
    async recordToolMessage(request, context) {
      const { spaceId } = request;
      const owner = await sessions.ownerFor(request, callerOf(context));
      await access.requireSession(spaceId, owner.sessionId);
      const tool = request.message ?? refuseField("message", "is required");
      if (tool.callId === "") refuseField("message.call_id", "is required");
      return { message: await messages.recordTool({ spaceId, author: agentMember(owner), tool }) };
    },
  };
}

/** A watch is for a grant that is taken back no longer than this. */
const RECHECK_MS = 1_000;

function requiredAgain(require: () => Promise<unknown>): () => Promise<void> {
  let checkedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - checkedAt < RECHECK_MS) return;
    await require();
    checkedAt = performance.now();
  };
}

const MAX_TEXT = 262_144;

function validContent(content: ContentPart[]): ContentPart[] {
  if (content.some(({ part }) => part.case !== "text"))
    refuseField("content", "has a part of a kind that is not taken here");
  const { length } = textOfContent(content);
  if (length === 0) refuseField("content", "has no text");
  if (length > MAX_TEXT) refuseField("content", `has a text of ${length} characters; ${MAX_TEXT} are possible`);
  return content;
}

/** An agent speaks where it is; a person becomes a member by speaking. */
async function authorOf(
  { membership, access, sessions }: SpaceParts,
  { spaceId, author }: SendMessageRequest,
  caller: Caller,
): Promise<Member> {
  const { id } = await access.require(spaceId, caller);
  if (author.case !== "agent") {
    const person = personMember(principalOf(caller), author.value ?? "");
    await membership.join(id, person);
    return person;
  }
  const owner = await sessions.ownerFor(author.value, caller);
  if ((await membership.activeSpace(owner)) === id) return agentMember(owner);
  return refuse("failed_precondition", `session ${owner.sessionId} is not in space "${id}"`, {
    reason: "SESSION_NOT_IN_SPACE",
  });
}
