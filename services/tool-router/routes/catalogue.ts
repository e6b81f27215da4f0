import type { ConnectRouter } from "@connectrpc/connect";
import { AgentService } from "#gen/toolbus/router/v1/agents_pb.ts";
import { CatalogueService } from "#gen/toolbus/router/v1/catalogue_pb.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { BY_RPC, type CatalogueEditor } from "../catalogue/editor.ts";
import { type CatalogueFiles, linesFrom } from "../catalogue/files.ts";

export interface CatalogueRoutes {
  catalogue: Catalogue;
  editor: CatalogueEditor;
  files: Pick<CatalogueFiles, "refused" | "loaded">;
  /** Aborts when the service stops: watches end then. */
  stopping: AbortSignal;
}

export function routeCatalogue(router: ConnectRouter, routes: CatalogueRoutes): void {
  const { catalogue, editor, files, stopping } = routes;
  router.service(AgentService, {
    async applyAgent({ agent, validateOnly }) {
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
    async deleteAgent({ name }) {
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
  router.service(CatalogueService, {
    async applyTool({ tool }) {
      return { tool: await editor.applyTool(tool!, BY_RPC) };
    },
    async getTool({ name }) {
      await catalogue.caughtUp();
      return { tool: catalogue.storedTool(name) };
    },
    async deleteTool({ name }) {
      await editor.removeTool(name, BY_RPC);
      return {};
    },
    async applyProvider({ provider }) {
      return { provider: await editor.applyProvider(provider!) };
    },
    async listProviders() {
      await catalogue.caughtUp();
      return { providers: catalogue.providers.toSorted((one, other) => one.name.localeCompare(other.name)) };
    },
    async deleteProvider({ name }) {
      await editor.removeProvider(name);
      return {};
    },
  });
}
