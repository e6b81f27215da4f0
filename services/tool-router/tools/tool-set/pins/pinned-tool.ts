import type { StoredPin } from "#gen/toolbus/internal/tool/v1/stored_pin_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";

export interface PinnedTool {
  readonly state: "held" | "unrecorded" | "changed";
  readonly offered: Tool;
  readonly digest: string;
  /** The digest that the agent's configuration names; empty when it goes by what is recorded. */
  readonly wanted: string;
}

/** What is recorded of an agent's tool. */
export type Approvals = (agent: string, reference: string) => StoredPin | undefined;
