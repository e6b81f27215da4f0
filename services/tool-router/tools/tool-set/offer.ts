import type { OfferedTool } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source, SourceStatus } from "#gen/toolbus/tool/v1/source_pb.ts";

export const SPACES_PROVIDER = "spaces";
export const CALLER_PROVIDER = "caller";

/** What one provider offers in a scope: by itself, or from the sources that the agent declares. */
export interface Offer {
  readonly provider: string;
  /** Sources by name; empty for the provider's own offer. */
  readonly declared: ReadonlyMap<string, Source>;
  readonly tools: readonly OfferedTool[];
  readonly sources: readonly SourceStatus[];
  /** Whether the provider has not answered yet, nor failed. */
  readonly isAwaited?: boolean;
  /** Why the provider itself cannot be asked; empty when it can. */
  readonly failure: string;
  /** Since when, as a time of day. */
  readonly failedSince?: string;
  /** The faults of tools that cannot be called. */
  readonly faults?: ReadonlyMap<OfferedTool, string>;
  /** The same for people, with what was left out; empty when all is well. */
  readonly unfit?: string;
  /** Whether the provider says that it offers the same in every scope. */
  readonly isAlike?: boolean;
}
