import { create } from "@bufbuild/protobuf";
import { type StoredAgent, StoredAgentSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { type StoredProvider, StoredProviderSchema } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { type CatalogTool, CatalogToolSchema } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { Validator } from "#runtime/schema/json-schema/validator.ts";
import type { Audit } from "../catalogue/audit/audit.ts";
import { BucketView } from "../catalogue/bucket-view.ts";
import { Catalogue } from "../catalogue/catalogue.ts";
import type { ServerCheck } from "../catalogue/checks/check-server.ts";
import { CatalogueEditor } from "../catalogue/editor.ts";
import { codecOf, createDocuments, openFollowing } from "../subscriptions/buckets/documents.ts";

export interface CatalogueNeeds {
  /** Providers beside those of the suite, by configuration. */
  providers: readonly { name: string; address: { case: "service" | "url"; value: string } }[];
  validator: Validator;
  audit: Audit;
  servers: ServerCheck;
  /** By name, for headers of gateway tools. */
  secrets: ReadonlyMap<string, string>;
  onFault: (fault: string) => void;
}

export interface OpenCatalogue extends AsyncDisposable {
  catalogue: Catalogue;
  editor: CatalogueEditor;
}

/** The providers of the suite, and the services that they are. */
const OWN_PROVIDERS = {
  mcp: "mcp-bridge",
  worker: "worker-pool",
  caller: "caller-relay",
  spaces: "spaces",
  agents: "orchestrator",
};

const AGENTS = { bucket: "toolbus_agents", prefix: "", codec: codecOf(StoredAgentSchema) } as const;
const TOOLS = { bucket: "toolbus_tools", prefix: "tool.", codec: codecOf(CatalogToolSchema) } as const;
const PROVIDERS = { bucket: "toolbus_tools", prefix: "provider.", codec: codecOf(StoredProviderSchema) } as const;

/** The catalogue, which follows its buckets for as long as it is open. */
export async function openCatalogue(bus: Bus, needs: CatalogueNeeds): Promise<OpenCatalogue> {
  const { validator, audit, servers, secrets, onFault } = needs;
  await using stack = new AsyncDisposableStack();
  const agents = { place: AGENTS, documents: createDocuments(bus, AGENTS), view: new BucketView<StoredAgent>() };
  const tools = { place: TOOLS, documents: createDocuments(bus, TOOLS), view: new BucketView<CatalogTool>() };
  const providers = {
    place: PROVIDERS,
    documents: createDocuments(bus, PROVIDERS),
    view: new BucketView<StoredProvider>(),
  };
  const agentBucket = stack.use(await openFollowing(bus, "toolbus_agents", [agents], onFault));
  const toolBucket = stack.use(await openFollowing(bus, "toolbus_tools", [tools, providers], onFault));
  const ownProviders = [
    ...Object.entries(OWN_PROVIDERS).map(([name, service]) => ({
      origin: "suite",
      provider: { name, address: { case: "service" as const, value: service }, takesRunSources: name === "mcp" },
    })),
    ...needs.providers.map((provider) => ({ origin: "configuration", provider })),
  ].map((provider) => create(StoredProviderSchema, provider));
  const caughtUp = async () => void (await Promise.all([agentBucket.caughtUp(), toolBucket.caughtUp()]));
  const collections = { agents, tools, providers };
  const catalogue = new Catalogue({ ...collections, ownProviders, caughtUp });
  const editor = new CatalogueEditor({ ...collections, catalogue, validator, audit, servers, secrets });
  const owned = stack.move();
  return { catalogue, editor, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
