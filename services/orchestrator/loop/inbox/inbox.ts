import type { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import type { InstructionPart, RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import type { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import type { ClientOnBehalf } from "#runtime/rpc/bus/client-on-behalf.ts";

/** The inbox of an agent in a session, which spaces keep. */
export type Inbox = Pick<ClientOnBehalf<typeof RunContextService>, "getRunContext"> &
  Pick<ClientOnBehalf<typeof InboxDeliveryService>, "acknowledgeInbox"> &
  Pick<ClientOnBehalf<typeof InboxService>, "listInboxEvents">;

export interface InboxContents {
  /** What the agent is told in addition to its instructions. */
  readonly instructions: readonly Pick<InstructionPart, "text" | "tools">[];
  readonly events: readonly InboxEvent[];
}
