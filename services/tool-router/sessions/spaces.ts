import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DeliverEventRequestSchema } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import type { RecordToolMessageRequestSchema } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";

/** What the router needs of the spaces service. */
export interface Spaces {
  /** The active space of a session's agent; empty when there is none. */
  activeSpace(sessionId: string, agent: string): Promise<string>;
  recordToolMessage(request: MessageInitShape<typeof RecordToolMessageRequestSchema>): Promise<void>;
  deliverEvent(request: MessageInitShape<typeof DeliverEventRequestSchema>): Promise<void>;
}

/** Takes the agent of a closed session out of its space: what is said there would go to it for good. */
export type LeaveSpace = (sessionId: string, agent: string) => Promise<void>;

export type IsForPrincipal = (spaceId: string, principal: string) => Promise<boolean>;

/** Forgets what stands of a session in spaces; false if something waits for an agent of the session, which is not closed. */
export type ForgetSession = (request: { sessionId: string; closed: boolean }) => Promise<boolean>;
