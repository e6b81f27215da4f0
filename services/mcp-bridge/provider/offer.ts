import { create } from "@bufbuild/protobuf";
import type { GetProvidedToolsResponse, OfferedTool } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type Source, type SourceStatus, SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";

export type AskedSource = Pick<Source, "name" | "config" | "fromRun">;

export interface SourceOffer {
  tools: OfferedTool[];
  status: SourceStatus;
}

export function failedOffer(source: string, reason: string): SourceOffer {
  return { tools: [], status: create(SourceStatusSchema, { source, reason }) };
}

export function startingOffer(source: string): SourceOffer {
  return { tools: [], status: create(SourceStatusSchema, { source, reason: "it is starting", starting: true }) };
}

export function offerFromList(
  source: string,
  listed: Pick<GetProvidedToolsResponse, "tools" | "sources">,
): SourceOffer {
  const [status] = listed.sources;
  return status ? { tools: listed.tools, status } : failedOffer(source, "its owner says nothing of it");
}
