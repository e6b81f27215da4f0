import type { InstructionPart } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import type { RunAccepted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";

/** The inbox of an agent in a session, which spaces keep: each request may fail. */
export interface Inbox {
  /** What the agent is told in addition to its instructions, and the events that wait in its inbox. */
  read(recipient: Recipient, signal: AbortSignal): Promise<InboxContents>;
  list(recipient: Recipient, signal: AbortSignal): Promise<InboxEvent[]>;
  /** Removes the events from the inbox. */
  acknowledge(recipient: Recipient, eventIds: readonly string[], signal: AbortSignal): Promise<void>;
}

export type Recipient = Pick<RunAccepted, "sessionId" | "agent" | "principal">;

export interface InboxContents {
  readonly instructions: readonly Pick<InstructionPart, "text" | "tools">[];
  readonly events: readonly InboxEvent[];
}
