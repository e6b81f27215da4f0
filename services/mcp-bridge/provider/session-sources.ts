import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ScopeSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { SourceSchema } from "#gen/toolbus/tool/v1/source_pb.ts";

/** What the sources of a session are; refuses one that the session's agent may not use so. */
export interface SessionSources {
  find(sessionId: string, source: string, purpose: "read" | "use", signal: AbortSignal): Promise<FoundSource>;
}

export interface FoundSource {
  readonly scope: MessageInitShape<typeof ScopeSchema>;
  readonly source: MessageInitShape<typeof SourceSchema>;
}

export interface Resource {
  readonly source: string;
  readonly uri: string;
}

export interface ResourceOfSession extends Resource {
  readonly sessionId: string;
}
