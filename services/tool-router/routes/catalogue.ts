import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { AgentService, type StoredAgent, WatchAgentsResponseSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { ProviderService, type StoredProvider } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { type CatalogTool, ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { requireOperator } from "#runtime/failure/operator.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { callerOf } from "#runtime/rpc/identity.ts";
import { pageOf } from "#runtime/rpc/paging/page.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { BY_RPC, type CatalogueEditor, type Terms } from "../catalogue/editor.ts";
import type { CatalogueFiles } from "../catalogue/files/files.ts";

export interface CatalogueRoutes {
  catalogue: Catalogue;
  editor: CatalogueEditor;
  files: Pick<CatalogueFiles, "refused" | "loaded">;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeCatalogue(router: ConnectRouter, routes: CatalogueRoutes): void {
  const { catalogue, editor, files, stopping } = routes;
  const requireFor = (deed: string, context: HandlerContext) => requireOperator(deed, callerOf(context));

  router.service(AgentService, {
    async applyAgent({ agent, ...conditions }, context) {
      if (!conditions.validateOnly) requireFor("to apply an agent", context);
      return { agent: await editor.applyAgent(agent!, termsFrom(conditions)) };
    },
    async getAgent({ name }) {
      await catalogue.caughtUp();
      return { agent: catalogue.storedAgent(name) };
    },
    async listAgents(request) {
      await catalogue.caughtUp();
      const named = { elements: catalogue.agents, placeOf: nameOfAgent };
      const { items, nextPageToken } = pageOf(["agents"], named, request);
      const refusedFiles = request.pageToken === "" ? files.refused("agents", "tools") : [];
      return { agents: items, refusedFiles, nextPageToken };
    },
    async deleteAgent({ name, ...conditions }, context) {
      requireFor("to delete an agent", context);
      await editor.removeAgent(name, termsFrom(conditions));
      return {};
    },
    async *watchAgents(_, { signal }) {
      using ending = openEnding(signal, stopping);
      const ends = ending.signal;
      const ended = new Promise<void>((resolve) => ends.addEventListener("abort", () => resolve(), { once: true }));
      await catalogue.caughtUp();
      while (!ends.aborted) {
        const changed = Promise.race([catalogue.agentsChanged, files.loaded, ended]);
        const told = { agents: catalogue.agents, refusedFiles: files.refused("agents", "tools") };
        yield withEtag(WatchAgentsResponseSchema, told);
        await changed;
      }
    },
  });
  router.service(ToolCatalogService, {
    async applyCatalogTool({ tool, ...conditions }, context) {
      requireFor("to apply a tool", context);
      return { tool: await editor.applyTool(tool!, termsFrom(conditions)) };
    },
    async getCatalogTool({ name }) {
      await catalogue.caughtUp();
      return { tool: catalogue.catalogTool(name) };
    },
    async listCatalogTools(request) {
      await catalogue.caughtUp();
      const named = { elements: catalogue.catalogTools, placeOf: nameOfTool };
      const { items, nextPageToken } = pageOf(["catalog tools"], named, request);
      const refusedFiles = request.pageToken === "" ? files.refused("tools") : [];
      return { tools: items, refusedFiles, nextPageToken };
    },
    async deleteCatalogTool({ name, ...conditions }, context) {
      requireFor("to delete a tool", context);
      await editor.removeTool(name, termsFrom(conditions));
      return {};
    },
  });
  router.service(ProviderService, {
    async applyProvider({ provider, ...conditions }, context) {
      requireFor("to apply a provider", context);
      return { provider: await editor.applyProvider(provider!, termsFrom(conditions)) };
    },
    async getProvider({ name }) {
      await catalogue.caughtUp();
      return { provider: catalogue.storedProvider(name) };
    },
    async listProviders(request) {
      await catalogue.caughtUp();
      const named = { elements: catalogue.storedProviders, placeOf: nameOfProvider };
      const { items, nextPageToken } = pageOf(["providers"], named, request);
      return { providers: items, nextPageToken };
    },
    async deleteProvider({ name, ...conditions }, context) {
      requireFor("to delete a provider", context);
      await editor.removeProvider(name, termsFrom(conditions));
      return {};
    },
  });
}

function termsFrom({ expectedRevision, validateOnly = false }: Omit<Terms, "origin">): Terms {
  return { origin: BY_RPC, expectedRevision, validateOnly };
}

function nameOfAgent({ agent }: StoredAgent): string {
  return agent?.name ?? "";
}

function nameOfTool({ tool }: CatalogTool): string {
  return tool?.name ?? "";
}

function nameOfProvider({ provider }: StoredProvider): string {
  return provider?.name ?? "";
}
