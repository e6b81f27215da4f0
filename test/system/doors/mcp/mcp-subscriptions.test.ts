// Subscriptions to resources: clients of either era before servers of either era.

import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../../cli/connection.ts";
import { openTestSuite } from "../../../harness/suite.ts";
import { type ChangingServer, openNewChangingServer, openOldChangingServer } from "../fixtures/changing-servers.ts";
import { ask, begin, eventsOf, openNewClient, openOldClient, send } from "../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";

const PATH = "/mcp/follower";
const stack = new AsyncDisposableStack();
let door: Door;
let here: { url: string; key: string; path: string };
const servers: Record<string, ChangingServer> = {};

beforeAll(async () => {
  door = stack.use(await openDoor());
  here = { url: door.suite.url, key: keys.alice, path: PATH };
  servers.old = stack.use(await openOldChangingServer("old"));
  servers.new = stack.use(await openNewChangingServer("new"));
  const sources = Object.entries(servers).map(([name, { url }]) => ({ name, provider: "mcp", config: { url } }));
  const model = { provider: "scripted", model: "none.json" };
  const agents = door.operator.client(AgentService);
  await agents.applyAgent({
    agent: { name: "follower", model, tools: { use: ["*"], allowed: { names: ["*"] } }, sources },
  });
  await agents.applyAgent({
    agent: { name: "blind", model, tools: { use: ["*"], allowed: { names: ["@old/nothing"] } }, sources },
  });
}, 120_000);
afterAll(() => stack.disposeAsync());

const isEmpty = (server: ChangingServer | undefined) =>
  until(() => server?.subscribed.size === 0, { timeoutMs: 20_000, what: "the end of the subscriptions at the server" });

/** Changes the resource again and again until it is told: a stream needs a moment. */
const changesUntil = (server: ChangingServer, uri: string, isTold: () => boolean) =>
  until(
    async () => {
      await server.change(uri);
      return isTold();
    },
    { timeoutMs: 20_000, intervalMs: 50, what: `the news of ${uri}` },
  );

describe.each(["old", "new"])("DOOR-1 resources of a server of the %s protocol", (name) => {
  it("are told to a client of 2025-11-25 as long as it is subscribed, and the server is let go of after the last", async () => {
    const server = servers[name]!;
    const uri = `${name}://one`;
    {
      await using one = await openOldClient(here);
      await using other = await openOldClient(here);
      const told: string[] = [];
      const toldOther: string[] = [];
      one.client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void told.push(params.uri));
      other.client.setNotificationHandler(
        ResourceUpdatedNotificationSchema,
        ({ params }) => void toldOther.push(params.uri),
      );
      await one.client.subscribeResource({ uri });
      expect([...server.subscribed]).toEqual([uri]);
      await server.change(uri); // at once: what has been accepted is told
      await until(() => told.length > 0, { timeoutMs: 20_000, what: "the first news" });
      await one.client.subscribeResource({ uri: `${name}://from-the-template` });
      await changesUntil(server, `${name}://from-the-template`, () => told.includes(`${name}://from-the-template`));
      expect(toldOther).toEqual([]);
      await other.client.subscribeResource({ uri });
      await one.client.unsubscribeResource({ uri });
      await changesUntil(server, uri, () => toldOther.includes(uri));
      expect(server.subscribed.has(uri)).toBe(true);
    }
    await isEmpty(server);
  });

  it("are told to a client of 2026-07-28 that listens, and no others", async () => {
    const server = servers[name]!;
    const told: string[] = [];
    {
      await using one = await openNewClient(here);
      one.client.setNotificationHandler("notifications/resources/updated", ({ params }) => void told.push(params.uri));
      const uris = [`${name}://one`, `${name}://two`];
      const listening = await one.client.listen({ resourceSubscriptions: [...uris, "file:///etc/passwd"] });
      expect(listening.honoredFilter.resourceSubscriptions).toEqual(uris);
      expect([...server.subscribed].toSorted()).toEqual(uris);
      await server.change(`${name}://three`);
      await server.change(`${name}://two`);
      await until(() => told.length > 0, { timeoutMs: 10_000, what: "the news" });
      expect(told).toEqual([`${name}://two`]);
      await listening.close();
    }
    await isEmpty(server);
  });

  it("are told again by a server that had broken off, which may have changed them meanwhile", async () => {
    const server = servers[name]!;
    const uri = `${name}://one`;
    await using one = await openNewClient(here);
    const told: string[] = [];
    one.client.setNotificationHandler("notifications/resources/updated", ({ params }) => void told.push(params.uri));
    await one.client.listen({ resourceSubscriptions: [uri] });
    server.breakOff();
    if (name === "old") await one.client.readResource({ uri }); // a server of before is noticed to be another at the next request
    await until(() => told.includes(uri), { timeoutMs: 20_000, what: "that it may have changed" });
    told.length = 0;
    await changesUntil(server, uri, () => told.includes(uri));
  });
});

it("DOOR-1 a subscription holds at any gateway, also after the one that took it was killed", async () => {
  const doomed = await openTestSuite(door.gatewayOptions);
  stack.use(doomed);
  const at = { ...here, url: doomed.url };
  const session = { "mcp-session-id": await begin(at), "mcp-protocol-version": "2025-11-25" };
  const uri = "old://two";
  const subscribe = { jsonrpc: "2.0", id: 1, method: "resources/subscribe", params: { uri } };
  expect(await (await send(at, subscribe, session)).json()).toMatchObject({ result: {} });
  process.kill(doomed.services[0]!.pid!, "SIGKILL");
  const stream = await ask({ ...here, url: door.other.url }, "GET", session);
  let told = "";
  void (async () => {
    for await (const { data } of eventsOf(stream)) told += data;
  })().catch(() => {});
  await changesUntil(servers.old!, uri, () => told.includes("notifications/resources/updated"));
  expect(told).toContain(uri);
  await ask({ ...here, url: door.other.url }, "DELETE", session);
});

it("DOOR-1 who is refused is told why: unknown resources, servers that do not tell, agents that may not read", async () => {
  await using one = await openOldClient(here);
  await expect(one.client.subscribeResource({ uri: "file:///etc/passwd" })).rejects.toThrow(/not found/i);
  await expect(one.client.subscribeResource({ uri: "old://refused" })).rejects.toThrow(/of that nobody is told/);
  await using plain = await openOldClient({ ...here, path: "/mcp/clerk" });
  await using blind = await openOldClient({ ...here, path: "/mcp/blind" });
  await expect(blind.client.subscribeResource({ uri: "old://one" })).rejects.toThrow();
  expect(plain.client.getServerCapabilities()?.resources?.subscribe).toBe(true);
  await using stranger = await openNewClient({ ...here, path: "/mcp/blind" });
  const listening = await stranger.client.listen({ toolsListChanged: true, resourceSubscriptions: ["old://one"] });
  expect(listening.honoredFilter.resourceSubscriptions).toBeUndefined();
});

it("DOOR-1 news reach every stream over whichever bridge, also after one of them was killed", async () => {
  const { env } = door.gatewayOptions;
  const natsUrl = door.suite.nats.url;
  const services = ["gateway", "mcp-bridge"];
  const doomed = stack.use(await openTestSuite({ natsUrl, env, services, isolate: true, restart: false }));
  const bridge = doomed.services.find(({ service }) => service === "mcp-bridge");
  const uri = "old://one";
  const opened = await Promise.all(Array.from({ length: 6 }, () => openOldClient(here)));
  for (const one of opened) stack.use(one);
  const told = new Set<number>();
  for (const [place, { client }] of opened.entries()) {
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void told.add(place));
    await client.subscribeResource({ uri });
  }
  await changesUntil(servers.old!, uri, () => told.size === opened.length);
  process.kill(bridge!.pid!, "SIGKILL");
  told.clear();
  await changesUntil(servers.old!, uri, () => told.size === opened.length);
}, 60_000);

it("DOOR-1 a session has a hundred subscriptions at most, which are its principal's own", async () => {
  const { sessionId } = await openOldClient(here);
  const contentOf = (apiKey: string) => openConnection({ url: here.url, apiKey }).client(McpContentService);
  const subscribe = (place: number, key = keys.alice) =>
    contentOf(key).subscribeResource({ source: { sessionId, source: "old" }, uri: `old://${place}` });
  await expect(subscribe(0, keys.mallory)).rejects.toThrow(/session/);
  for (let place = 0; place < 100; place += 20)
    await Promise.all(Array.from({ length: 20 }, (_, more) => subscribe(place + more)));
  await expect(subscribe(100)).rejects.toThrow(/100/);
  await subscribe(7); // which it has
}, 60_000);
