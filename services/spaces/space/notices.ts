import { create } from "@bufbuild/protobuf";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { MemberKind, type SpaceEvent } from "#gen/toolbus/space/v1/space_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { Membership } from "./membership.ts";
import type { SpaceAccess } from "./space-access.ts";

export interface NoticesParts {
  membership: Pick<Membership, "recipients">;
  access: Pick<SpaceAccess, "isForSession">;
  inbox: Pick<Inbox, "deliver">;
  logger: { warn(details: object, message: string): void };
}

/**
 * Brings what is said in a space to the inboxes of the other agents in it. Tool calls that are shown wake nobody. Doing it
 * twice for an event does it once, as the inbox knows what it was given.
 */
export function createNotices({ membership, access, inbox, logger }: NoticesParts) {
  return async ({ event }: SpaceEvent): Promise<void> => {
    if (event.case !== "messagePosted" || event.value.content.case !== "text") return;
    const { id, spaceId, author, createTime, content } = event.value;
    for (const agent of await membership.recipients(spaceId, author)) {
      if (!(await access.isForSession(spaceId, agent.sessionId))) continue;
      const notice: InboxEvent = create(InboxEventSchema, {
        eventId: `msg:${spaceId}:${id}`,
        ...agent,
        ...(createTime && { createTime }),
        event: {
          case: "message",
          value: {
            spaceId,
            author: author?.name ?? "",
            content: content.value.content,
            authorKind: author?.kind ?? MemberKind.UNSPECIFIED,
          },
        },
      });
      await inbox.deliver(notice).catch((error: unknown) => {
        if (!(error instanceof Failure && error.reason === "INBOX_FULL")) throw error;
        // the words stand in the space; waiting for room in one inbox would keep those of others waiting
        logger.warn({ err: error, ...agent, spaceId }, "a message of a space has no room in an inbox");
      });
    }
  };
}
