// The door of MCP clients as an OAuth resource server.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { discoverOAuthProtectedResourceMetadata } from "@modelcontextprotocol/sdk/client/auth.js";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, expect, it } from "vitest";
import { GrantsSchema } from "#gen/toolbus/access/v1/access_pb.ts";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { openTestSuite, type TestSuite } from "../../../harness/suite.ts";
import { initializing, openNewClient, send } from "../fixtures/clients.ts";
import { type Door, openDoor } from "../fixtures/door.ts";

const stack = new AsyncDisposableStack();
const issuer = "https://login.example/";
const resource = "https://toolbus.example/mcp";
const { privateKey, publicKey } = await generateKeyPair("ES256");
let door: Door;
let suite: TestSuite;

beforeAll(async () => {
  const keys = { keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", kid: "one" }] };
  const server = createServer((_, response) => response.end(JSON.stringify(keys)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.defer(() => void server.close());
  door = stack.use(await openDoor());
  const env = {
    ...door.gatewayOptions.env,
    TOOLBUS_JWT_ISSUER: issuer,
    TOOLBUS_JWT_AUDIENCE: resource,
    TOOLBUS_JWT_JWKS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    TOOLBUS_JWT_GRANTS_CLAIM: "scope",
    TOOLBUS_PUBLIC_URL: "https://toolbus.example",
  };
  suite = stack.use(await openTestSuite({ ...door.gatewayOptions, env }));
  const agents = door.operator.client(AgentService);
  const agent = (await agents.getAgent({ name: "narrow" })).agent!.agent!;
  await agents.applyAgent({ agent: { ...agent, grants: create(GrantsSchema, { principals: ["alice"] }) } });
}, 120_000);
afterAll(() => stack.disposeAsync());

const tokenFor = (audience: string, scope: string) =>
  new SignJWT({ scope })
    .setProtectedHeader({ alg: "ES256", kid: "one" })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject("carol")
    .setExpirationTime("5m")
    .sign(privateKey);

it("DOOR-3 says who issues its tokens, where a client looks for it", async () => {
  const refused = await send({ url: suite.url, key: "" }, initializing);
  expect(refused.status).toBe(401);
  const metadata = "https://toolbus.example/.well-known/oauth-protected-resource/mcp";
  expect(refused.headers.get("www-authenticate")).toBe(`Bearer resource_metadata="${metadata}"`);
  const found = await discoverOAuthProtectedResourceMetadata(`${suite.url}/mcp/clerk`);
  expect(found).toMatchObject({ resource, authorization_servers: [issuer] });
  for (const path of ["/mcp/", "/mcp/clerk/", "/mcp/~suite/"])
    expect(await (await fetch(`${suite.url}/.well-known/oauth-protected-resource${path}`)).json()).toMatchObject({
      resource,
    });
  expect((await fetch(`${door.suite.url}/.well-known/oauth-protected-resource`)).status).toBe(404);
});

it("DOOR-3 takes tokens for itself alone, and lets them reach the agents that they grant", async () => {
  const key = await tokenFor(resource, "agent:narrow");
  await using one = await openNewClient({ url: suite.url, key, path: "/mcp/narrow" });
  expect((await one.client.listTools()).tools.map(({ name }) => name)).toContain("all__echo");
  expect((await send({ url: suite.url, key }, initializing)).status).toBe(403);
  await using only = await openNewClient({ url: suite.url, key, path: "/mcp" });
  expect((await only.client.listTools()).tools.map(({ name }) => name)).toContain("all__echo");
  const models = await fetch(`${suite.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  expect(await models.json()).toMatchObject({ data: [{ id: "narrow" }] });
  const elsewhere = await send(
    { url: suite.url, key: await tokenFor("https://other.example", "agent:narrow") },
    initializing,
  );
  expect(elsewhere.status).toBe(401);
  expect(await elsewhere.text()).toContain("another audience");
});
