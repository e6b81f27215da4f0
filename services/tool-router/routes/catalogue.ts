import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import {
  AgentService,
  type StoredAgent,
  StoredAgentSchema,
  WatchAgentsResponseSchema,
} from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { ProviderService, type StoredProvider } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import {
  type CatalogTool,
  CatalogToolSchema,
  ToolCatalogService,
} from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { requireOperator } from "#runtime/failure/operator.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { callerOf, principalOf, seesAll } from "#runtime/rpc/identity.ts";
import { openPage, pageOf } from "#runtime/rpc/paging/page.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { BY_RPC, type CatalogueEditor, type Terms } from "../catalogue/editor.ts";
import type { CatalogueFiles } from "../catalogue/files/files.ts";
import { publicAgent, publicProvider, publicTool } from "../catalogue/public-view.ts";

export interface CatalogueRoutes {
  catalogue: Catalogue;
  editor: CatalogueEditor;
  files: Pick<CatalogueFiles, "refused" | "loads">;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeCatalogue(router: ConnectRouter, routes: CatalogueRoutes): void {
  const { catalogue, editor, files, stopping } = routes;
  /** Faults cite the files. */
  const refusedFor = (context: HandlerContext, ...kinds: Parameters<typeof files.refused>) =>
    seesAll(callerOf(context)) ? files.refused(...kinds) : [];

  router.service(AgentService, {
    async applyAgent({ agent, ...conditions }, context) {
      if (!conditions.validateOnly) requireOperator("to apply an agent", callerOf(context));
      return { agent: await editor.applyAgent(agent!, termsFrom(conditions, context)) };
    },
    async getAgent({ name }, context) {
      await catalogue.known("agents");
      return { agent: shownTo(context, publicAgent)(catalogue.storedAgent(name)) };
    },
    async listAgents(request, context) {
      await Promise.all([catalogue.known("agents"), request.onlyGranted && catalogue.known("grants")]); // GRANT-3
      const principal = principalOf(callerOf(context));
      const isListed = ({ agent }: StoredAgent) =>
        !request.onlyGranted || (agent && catalogue.mayUse(principal, agent));
      const elements = catalogue.agents.filter(isListed).map(shownTo(context, publicAgent));
      const named = {
        elements,
        placeOf: ({ agent }: StoredAgent) => agent?.name ?? "",
        takes: openPage(StoredAgentSchema),
      };
      const { items, nextPageToken } = pageOf(["agents"], named, request);
      const refusedFiles = request.pageToken === "" ? refusedFor(context, "agents", "tools") : [];
      return { agents: items, refusedFiles, nextPageToken };
    },
    async deleteAgent({ name, ...conditions }, context) {
      await editor.removeAgent(name, termsFrom(conditions, context));
      return {};
    },
    async *watchAgents(_, context) {
      const { signal } = context;
      await catalogue.known("agents");
      while (!signal.aborted && !stopping.aborted) {
        using change = catalogue.agentChanges.next();
        using load = files.loads.next();
        const agents = catalogue.agents.map(shownTo(context, publicAgent));
        const told = { agents, refusedFiles: refusedFor(context, "agents", "tools") };
        yield withEtag(WatchAgentsResponseSchema, told);
        await unlessAborted(Promise.race([change.happened, load.happened]), signal, stopping).catch(() => {}); // the loop looks at both
      }
    },
  });
  router.service(ToolCatalogService, {
    async applyCatalogTool({ tool, ...conditions }, context) {
      return { tool: await editor.applyTool(tool!, termsFrom(conditions, context)) };
    },
    async getCatalogTool({ name }, context) {
      await catalogue.known("tools");
      return { tool: shownTo(context, publicTool)(catalogue.catalogTool(name)) };
    },
    async listCatalogTools(request, context) {
      await catalogue.known("tools");
      const elements = catalogue.catalogTools.map(shownTo(context, publicTool));
      const named = {
        elements,
        placeOf: ({ tool }: CatalogTool) => tool?.name ?? "",
        takes: openPage(CatalogToolSchema),
      };
      const { items, nextPageToken } = pageOf(["catalog tools"], named, request);
      const refusedFiles = request.pageToken === "" ? refusedFor(context, "tools") : [];
      return { tools: items, refusedFiles, nextPageToken };
    },
    async deleteCatalogTool({ name, ...conditions }, context) {
      await editor.removeTool(name, termsFrom(conditions, context));
      return {};
    },
  });
  router.service(ProviderService, {
    async applyProvider({ provider, ...conditions }, context) {
      return { provider: await editor.applyProvider(provider!, termsFrom(conditions, context)) };
    },
    async getProvider({ name }, context) {
      await catalogue.known("providers");
      return { provider: shownTo(context, publicProvider)(catalogue.storedProvider(name)) };
    },
    async listProviders(request, context) {
      await catalogue.known("providers");
      const elements = catalogue.storedProviders.map(shownTo(context, publicProvider));
      const named = { elements, placeOf: ({ provider }: StoredProvider) => provider?.name ?? "" };
      const { items, nextPageToken } = pageOf(["providers"], named, request);
      return { providers: items, nextPageToken };
    },
    async deleteProvider({ name, ...conditions }, context) {
      await editor.removeProvider(name, termsFrom(conditions, context));
      return {};
    },
  });
}

/** What the caller sees of what is stored. */
function shownTo<T>(context: HandlerContext, publicView: (stored: T) => T): (stored: T) => T {
  return seesAll(callerOf(context)) ? (stored) => stored : publicView;
}

function termsFrom({ expectedRevision, validateOnly = false }: Partial<Terms>, context: HandlerContext): Terms {
  return { origin: BY_RPC, by: principalOf(callerOf(context)), expectedRevision, validateOnly };
}
