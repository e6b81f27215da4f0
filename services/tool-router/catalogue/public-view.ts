import type { Agent, Model } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { StoredAgent } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import type { StoredProvider } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import type { CatalogTool } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { originOfUrl } from "#runtime/http/origin-of-url.ts";

/*
 * What everybody sees of the catalogue who is no operator: what there is, and how to use it. Instructions, options, configurations,
 * headers, grants, paths and the rest of addresses may hold what somebody else must not read.
 */

export function publicAgent({ agent, ...stored }: StoredAgent): StoredAgent {
  return { ...stored, ...(agent && { agent: withoutConfiguration(agent) }), warnings: [], redacted: true };
}

function withoutConfiguration({ model, fallbackModel, grants: _, ...agent }: Agent): Agent {
  return {
    ...agent,
    instructions: "",
    ...(model && { model: withoutOptions(model) }),
    ...(fallbackModel && { fallbackModel: withoutOptions(fallbackModel) }),
    sources: agent.sources.map(({ config: _, ...source }) => source),
  };
}

function withoutOptions({ options: _, ...model }: Model): Model {
  return model;
}

export function publicTool({ tool, ...stored }: CatalogTool): CatalogTool {
  return { ...stored, ...(tool && { tool: publicDefinition(tool) }), redacted: true };
}

export function publicDefinition({ config: _, grants: __, execution, builtinPolicy, ...rest }: Tool): Tool {
  return {
    ...rest,
    ...(execution && { execution: { ...execution, url: originOfUrl(execution.url), headers: {} } }),
    ...(builtinPolicy && { builtinPolicy: { ...builtinPolicy, allowedPaths: [], allowedCommands: [] } }),
  };
}

export function publicProvider({ provider, ...stored }: StoredProvider): StoredProvider {
  if (provider?.address.case !== "url") return { ...stored, ...(provider && { provider }) };
  const address = { ...provider.address, value: originOfUrl(provider.address.value) };
  return { ...stored, provider: { ...provider, address }, redacted: true };
}
