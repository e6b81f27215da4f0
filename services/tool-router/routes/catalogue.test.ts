import { create } from "@bufbuild/protobuf";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { AgentService, StoredAgentSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { keptBytes } from "../../../runtime/collections/testing/kept-bytes.ts";
import { Catalogue, type CatalogueParts } from "../catalogue/catalogue.ts";
import { type CatalogueRoutes, routeCatalogue } from "./catalogue.ts";

test("SEC-5 a watch of agents that has ended leaves nothing, though no agent changes", async () => {
  const agents = agentsOf({});
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

test("SEC-2 agents that a token has just granted are listed to its principal, before any refusal", async () => {
  const value = create(StoredAgentSchema, { agent: { name: "clerk" } });
  const view = new BucketView();
  view.apply({ kind: "set", key: "clerk", value, revision: 1 });
  let isRead = false;
  const known = async (kind: string) => {
    if (kind === "grants") isRead = true;
  };
  const agents = agentsOf({ agents: { view }, grantees: { isGranted: () => isRead }, known });
  expect((await agents.listAgents({ onlyGranted: true })).agents).toHaveLength(1);
});

function agentsOf(parts: object) {
  const empty = () => ({ view: new BucketView() });
  const all = {
    agents: empty(),
    tools: empty(),
    providers: empty(),
    ownProviders: [],
    known: async () => {},
    ...parts,
  };
  const routes = {
    catalogue: new Catalogue(all as unknown as CatalogueParts),
    files: { loads: createChanges(), refused: () => [] },
    stopping: new AbortController().signal,
  };
  return createClient(
    AgentService,
    createRouterTransport((router) => routeCatalogue(router, routes as unknown as CatalogueRoutes)),
  );
}
