import { create } from "@bufbuild/protobuf";
import { type StoredAgent, StoredAgentSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { type StoredPin, StoredPinSchema } from "#gen/toolbus/internal/tool/v1/stored_pin_pb.ts";
import { type StoredProvider, StoredProviderSchema } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { type CatalogTool, CatalogToolSchema } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { codecOf, type Place } from "#runtime/bus/buckets/bucket.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { openBucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { unlessStalled } from "#runtime/bus/link/storage.ts";
import { openGrantees } from "#runtime/rpc/access/grantees.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import { Catalogue, type CatalogueKind } from "../catalogue/catalogue.ts";
import type { OwnSources } from "../catalogue/checks/check-agent.ts";
import { CatalogueEditor, type EditorParts } from "../catalogue/editor.ts";
import { Pins } from "../catalogue/pins/pins.ts";

export interface CatalogueNeeds extends Omit<EditorParts, "catalogue" | CatalogueKind> {
  /** Providers beside those of the suite, by configuration. */
  providers: readonly { name: string; address: { case: "service" | "url"; value: string } }[];
  ownSources: OwnSources;
  onFault: (fault: string) => void;
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

const PINS = { bucket: "toolbus_tools", prefix: "pin.", codec: codecOf(StoredPinSchema) } as const;

/** The catalogue, which follows its buckets until the stack is disposed. */
export async function openCatalogue(stack: AsyncDisposableStack, bus: Bus, needs: CatalogueNeeds) {
  const { audit, ownSources, onFault } = needs;
  const collection = async <T>(place: Place<T>) => {
    const bucket = createBucket(bus, place);
    return { bucket, ...stack.use(await openBucketView(bucket, onFault)) };
  };
  const agents = await collection<StoredAgent>(AGENTS);
  const tools = await collection<CatalogTool>(TOOLS);
  const providers = await collection<StoredProvider>(PROVIDERS);
  const pinned = await collection<StoredPin>(PINS);
  const ownProviders = [
    ...Object.entries(OWN_PROVIDERS).map(([name, service]) => ({
      origin: "suite",
      provider: { name, address: { case: "service" as const, value: service }, takesRunSources: name === "mcp" },
    })),
    ...needs.providers.map((provider) => ({ origin: "configuration", provider })),
  ].map((provider) => create(StoredProviderSchema, provider));
  const collections = { agents, tools, providers };
  const views = [...Object.values(collections), pinned];
  const caughtUp = async () => void (await Promise.all(views.map((one) => one.caughtUp())));
  const { grantees, ...grants } = stack.use(await openGrantees(bus, onFault));
  const readable = { ...collections, grants };
  const known = (kind: keyof typeof readable) => unlessStalled(bus.link.storage, () => readable[kind].caughtUp());
  const pins = new Pins({ pins: pinned, audit, clock, onFault });
  const catalogue = new Catalogue({ ...collections, ownProviders, grantees, pins, ownSources, caughtUp, known });
  const editor = new CatalogueEditor({ ...needs, ...collections, catalogue });
  return { catalogue, editor };
}
