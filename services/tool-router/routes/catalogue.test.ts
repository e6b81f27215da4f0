import { createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { keptBytes } from "../../../runtime/collections/testing/kept-bytes.ts";
import { Catalogue, type CatalogueParts } from "../catalogue/catalogue.ts";
import { type CatalogueRoutes, routeCatalogue } from "./catalogue.ts";

test("SEC-5 a watch of agents that has ended leaves nothing, though no agent changes", async () => {
  const empty = () => ({ view: new BucketView() });
  const parts = { agents: empty(), tools: empty(), providers: empty(), ownProviders: [], known: async () => {} };
  const routes = {
    catalogue: new Catalogue(parts as unknown as CatalogueParts),
    files: { loads: createChanges(), refused: () => [] },
    stopping: new AbortController().signal,
  };
  const agents = createClient(
    AgentService,
    createRouterTransport((router) => routeCatalogue(router, routes as unknown as CatalogueRoutes)),
  );
  const watchOnce = async () => {
    const leaving = new AbortController();
    const watching = agents.watchAgents({}, { signal: leaving.signal })[Symbol.asyncIterator]();
    await watching.next();
    const more = watching.next();
    leaving.abort();
    await more.catch(() => {}); // ended by the test
  };
  expect(await keptBytes(watchOnce)).toBeLessThan(400);
});
