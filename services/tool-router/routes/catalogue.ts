import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { ProviderService } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { requireOperator } from "#runtime/failure/operator.ts";
import { askerOf } from "#runtime/rpc/identity.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { BY_RPC, type CatalogueEditor } from "../catalogue/editor.ts";
import { type CatalogueFiles, linesFrom } from "../catalogue/files.ts";

export interface CatalogueRoutes {
  catalogue: Catalogue;
  editor: CatalogueEditor;
  files: Pick<CatalogueFiles, "refused" | "loaded">;
  /** Who may change the catalogue by RPC: what it holds runs commands, reads secrets and reaches into the network. */
  operators: ReadonlySet<string>;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeCatalogue(router: ConnectRouter, routes: CatalogueRoutes): void {
  const { catalogue, editor, files, operators, stopping } = routes;
  const requireFor = (deed: string, context: HandlerContext) => requireOperator(deed, askerOf(context), operators);

  router.service(AgentService, {
    async applyAgent({ agent, validateOnly }, context) {
      if (!validateOnly) requireFor("to apply an agent", context);
      return { agent: await editor.applyAgent(agent!, BY_RPC, validateOnly) };
    },
    async getAgent({ name }) {
      await catalogue.caughtUp();
      return { agent: catalogue.storedAgent(name) };
    },
    async listAgents() {
      await catalogue.caughtUp();
      return { agents: catalogue.agents, refusedFiles: [...files.refused] };
    },
    async deleteAgent({ name }, context) {
      requireFor("to delete an agent", context);
      await editor.removeAgent(name, BY_RPC);
      return {};
    },
    async *watchAgents(_, { signal }) {
      using ending = openEnding(signal, stopping);
      const ends = ending.signal;
      const ended = new Promise<void>((resolve) => ends.addEventListener("abort", () => resolve(), { once: true }));
      await catalogue.caughtUp();
      while (!ends.aborted) {
        const changed = Promise.race([catalogue.agentsChanged, files.loaded, ended]);
        yield { agents: catalogue.agents, faults: linesFrom(files.refused) };
        await changed;
      }
    },
  });
  router.service(ToolCatalogService, {
    async applyTool({ tool }, context) {
      requireFor("to apply a tool", context);
      return { tool: await editor.applyTool(tool!, BY_RPC) };
    },
    async getTool({ name }) {
      await catalogue.caughtUp();
      return { tool: catalogue.storedTool(name) };
    },
    async deleteTool({ name }, context) {
      requireFor("to delete a tool", context);
      await editor.removeTool(name, BY_RPC);
      return {};
    },
  });
  router.service(ProviderService, {
    async applyProvider({ provider }, context) {
      requireFor("to apply a provider", context);
      return { provider: await editor.applyProvider(provider!) };
    },
    async listProviders() {
      await catalogue.caughtUp();
      return { providers: catalogue.providers.toSorted((one, other) => one.name.localeCompare(other.name)) };
    },
    async deleteProvider({ name }, context) {
      requireFor("to delete a provider", context);
      await editor.removeProvider(name);
      return {};
    },
  });
}
