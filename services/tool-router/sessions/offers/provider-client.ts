import type {
  ExecuteToolRequest,
  ExecuteToolResponse,
  GetProvidedToolsResponse,
  Scope,
  WatchProvidedToolsResponse,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";

interface ListRequest {
  /** Absent for what a provider offers by itself, whoever asks. */
  scope?: Scope;
  sources: Source[];
}

interface CallOptions {
  signal: AbortSignal;
}

/**
 * A provider as the router's thinking sees it. What fails throws a `Failure`; one with reason `NOT_SENT` says that nothing
 * has been started.
 */
export interface ProviderClient {
  /** Where it is: changes when the provider's entry in the catalogue does. */
  readonly address: string;
  listTools(request: ListRequest, options: CallOptions): Promise<GetProvidedToolsResponse>;
  watchTools(request: ListRequest, options: CallOptions): AsyncIterable<WatchProvidedToolsResponse>;
  callTool(request: ExecuteToolRequest, options: CallOptions): AsyncIterable<ExecuteToolResponse>;
  /** The scope is over, with its session where that is about to be forgotten; gives how much was closed. */
  releaseScope(scope: Scope, options: CallOptions & { forgetsSession?: boolean }): Promise<number>;
}

/** The client of a provider by name; undefined when the catalogue has none of that name. */
export type FindProvider = (name: string) => ProviderClient | undefined;
