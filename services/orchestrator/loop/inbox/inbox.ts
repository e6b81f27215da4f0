import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";

/** What waits for an agent of a session, and what its runs are told besides. Kept elsewhere: each look may fail. */
export interface Inbox {
  /** What a run of the agent is told: goes behind its instructions, and what waits in its inbox. */
  tell(recipient: Recipient, signal: AbortSignal): Promise<Told>;
  list(recipient: Recipient, signal: AbortSignal): Promise<InboxEvent[]>;
  /** The events wait no longer. */
  acknowledge(recipient: Recipient, eventIds: readonly string[], signal: AbortSignal): Promise<void>;
}

export interface Recipient {
  readonly sessionId: string;
  readonly agent: string;
  readonly principal: string;
}

export interface Told {
  readonly instructions: string;
  readonly events: readonly InboxEvent[];
}
