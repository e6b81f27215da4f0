// Logins at authorization servers that do what their specifications do not foresee.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { asPrincipal } from "../../../../test/harness/callers.ts";
import { type Bridge, call, openBridge } from "../../testing/bridge.ts";
import { type MisbehavingServer, type Misbehaviour, openMisbehavingServer } from "./misbehaving-server.ts";
import { plain } from "./protected-server.ts";

const redirectUri = "http://127.0.0.1:9/callback";
const ada = asPrincipal("ada");

let bus: TestBus;
let bridge: Bridge;

beforeAll(async () => {
  bus = await openTestBus();
  bridge = await openBridge(bus, { TOOLBUS_MCP_LOGIN_KEY: randomBytes(32).toString("base64") });
});
afterAll(async () => {
  await bridge[Symbol.asyncDispose]();
  await bus[Symbol.asyncDispose]();
});

let servers = 0;

/** A server that has asked ada for a token, each time by another name. */
async function asked({ mcp }: MisbehavingServer) {
  servers += 1;
  const scope = { sessionId: `s-${servers}`, agent: "a1", principal: "ada" };
  const source = { name: `notes-${servers}`, config: { url: mcp.url } };
  await bridge.provider.getProvidedTools({ scope, sources: [source] });
  const echo = async () => (await call(bridge, source, "echo", { text: "mine" }, { scope })).output;
  return { name: source.name, echo };
}

async function begin(server: string) {
  const { authorizationUrl, state } = await bridge.servers.beginLogin({ server, redirectUri }, ada);
  const { searchParams } = new URL(authorizationUrl);
  return { state, clientId: searchParams.get("client_id"), scope: searchParams.get("scope") };
}

async function logIn(server: string): Promise<void> {
  const { state } = await begin(server);
  await bridge.servers.completeLogin({ state, code: "any" }, ada);
}

test.for([
  [500, { statusCode: 500, error: "Internal Server Error", message: "as Spring and Fastify say it" }],
  [503, { error: "service_unavailable" }],
  [429, { statusCode: 429, error: "Too Many Requests" }],
  [404, { statusCode: 404, error: "Not Found" }],
] as const)("a login outlives a renewal that is answered with HTTP %i", async ([status, body]) => {
  await using server = await openMisbehavingServer();
  const { name, echo } = await asked(server);
  await logIn(name);
  server.valid.clear();
  server.misbehaviour = { refusal: { status, body } };
  await expect(echo()).rejects.toThrow(`HTTP ${status}`);
  server.misbehaviour = {};
  expect(await echo()).toBe("mine");
  expect(server.tokenRequests.at(-1)?.get("refresh_token")).toBe("refresh-2");
});

test.for([400, 401, 403])("a login is over by a refusal of OAuth with HTTP %i", async (status) => {
  await using server = await openMisbehavingServer();
  const { name, echo } = await asked(server);
  await logIn(name);
  server.valid.clear();
  server.misbehaviour = { refusal: { status, body: { error: "invalid_grant" } } };
  await expect(echo()).rejects.toThrow("needs login");
});

test.for([0, -1, null, ""])(
  "tokens that are said to hold %j seconds are not renewed by each request",
  async (expires_in) => {
    await using server = await openMisbehavingServer({ tokens: { expires_in } });
    const { name, echo } = await asked(server);
    await logIn(name);
    for (let count = 0; count < 3; count++) expect(await echo()).toBe("mine");
    expect(server.tokenRequests.map((one) => one.get("grant_type"))).toEqual(["authorization_code"]);
  },
);

test("a client that its authorization server has forgotten is registered anew: after a logout, or when its login has expired", async () => {
  await using server = await openMisbehavingServer();
  const { name } = await asked(server);
  const first = await begin(name);
  expect((await begin(name)).clientId, "one that is on its way").toBe(first.clientId);
  await bridge.servers.deleteLogin({ server: name }, ada);
  const second = await begin(name);
  expect(second.clientId).not.toBe(first.clientId);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 11 * 60_000 });
  try {
    expect((await begin(name)).clientId).not.toBe(second.clientId);
  } finally {
    vi.useRealTimers();
  }
});

test("a login that was begun before a logout cannot be completed after it", async () => {
  await using server = await openMisbehavingServer();
  const { name } = await asked(server);
  const { state } = await begin(name);
  await bridge.servers.deleteLogin({ server: name }, ada);
  await expect(bridge.servers.completeLogin({ state, code: "any" }, ada)).rejects.toThrow("no such login");
});

test("a client that proves itself by HTTP Basic has its tokens revoked by that", async () => {
  const client = { client_secret: "secret", token_endpoint_auth_method: "client_secret_basic" };
  const metadata = { token_endpoint_auth_methods_supported: ["client_secret_basic"] };
  await using server = await openMisbehavingServer({ client, metadata });
  const { name } = await asked(server);
  await logIn(name);
  await bridge.servers.deleteLogin({ server: name }, ada);
  const [revocation] = server.revocations;
  expect(revocation?.authorization).toBe(`Basic ${btoa("client-1:secret")}`);
  expect(Object.fromEntries(revocation?.form ?? [])).toEqual({
    token: "refresh-2",
    client_id: "client-1",
    client_secret: "",
  });
});

test("a client without a secret has its tokens revoked also where that parameter must be there, as by the Python SDK", async () => {
  await using server = await openMisbehavingServer();
  const { name } = await asked(server);
  await logIn(name);
  await bridge.servers.deleteLogin({ server: name }, ada);
  expect(server.revocations.map(({ form }) => Object.fromEntries(form))).toEqual([
    { token: "refresh-2", client_id: "client-1", client_secret: "" },
  ]);
});

test("a server whose metadata is where it says itself is logged in to again, also after a logout", async () => {
  await using server = await openMisbehavingServer();
  server.mcp.variant = { ...plain, metadataPath: "/elsewhere.json" };
  const { name, echo } = await asked(server);
  await logIn(name);
  await logIn(name);
  await bridge.servers.deleteLogin({ server: name }, ada);
  await logIn(name);
  expect(await echo()).toBe("mine");
  server.mcp.variant = plain; // at the well-known place now
  await logIn(name);
  await bridge.servers.deleteLogin({ server: name }, ada);
  await logIn(name);
  expect(await echo()).toBe("mine");
});

test.for(["", 'Basic realm="notes", ', "Negotiate, "])("a challenge is found behind others: %j", async (others) => {
  await using server = await openMisbehavingServer();
  const challenge = `${others}Bearer resource_metadata="METADATA", scope="admin"`;
  server.mcp.variant = { metadataPath: "/elsewhere.json", challenge };
  const { name } = await asked(server);
  expect((await begin(name)).scope).toBe("admin");
});

test.for<[Misbehaviour, string]>([
  [{ tokens: { expires_in: "soon" } }, "its answer is no answer of OAuth: expires_in: expected number, received NaN"],
  [{ refusal: { status: 200, body: [] } }, "its answer is no answer of OAuth: expected object, received array"],
  [{ refusal: { status: 204, body: {} } }, "its answer is no answer of OAuth: it is no JSON"],
  [
    { refusal: { status: 200, body: Buffer.from("access_token=a&b=c") } },
    "its answer is no answer of OAuth: it is no JSON",
  ],
  [{ tokens: { scope: ["a"] } }, "its answer is no answer of OAuth: scope: expected string, received array"],
  [{ tokens: { access_token: "a\nb" } }, "it gives a token that no header can carry"],
  [{ client: { client_id: 7 } }, "its answer is no answer of OAuth: client_id: expected string, received number"],
  [{ metadata: { more: "x".repeat(300_000) } }, "the server's answer is larger than 262144 bytes"],
  [{ client: { client_name: "x".repeat(100_000) } }, "what its authorization server gave is too large to keep"],
])("a login fails in plain words where its authorization server gives %#", async ([misbehaviour, says]) => {
  await using server = await openMisbehavingServer(misbehaviour);
  const { name } = await asked(server);
  await expect(logIn(name)).rejects.toThrow(says);
});

test("a member that is null is absent, in metadata, registrations and answers with tokens", async () => {
  await using server = await openMisbehavingServer({
    metadata: { introspection_endpoint: null },
    client: { client_secret: null, logo_uri: null },
    tokens: { refresh_token: null, scope: null, id_token: null },
  });
  const { name, echo } = await asked(server);
  await logIn(name);
  expect(await echo()).toBe("mine");
});

test("a server that wants further scopes and names none has those asked for that it lists", async () => {
  await using server = await openMisbehavingServer();
  server.mcp.variant = { ...plain, challenge: 'Bearer resource_metadata="METADATA", scope="list"' };
  const { name, echo } = await asked(server);
  await logIn(name);
  const metadata = { scopes_supported: ["list", "write"] };
  server.mcp.variant = { ...plain, metadata, callScope: "write", namesNoScope: true };
  await expect(echo()).rejects.toThrow("it asks for further scopes, and does not say which");
  expect((await begin(name)).scope).toBe("list write");
});

test("a server that asks by several names is logged in to by each", async () => {
  await using server = await openMisbehavingServer();
  const [first, second] = [await asked(server), await asked(server)];
  for (const { name, echo } of [first, second]) {
    await expect(echo()).rejects.toThrow(`toolbus mcp login ${name}`);
    await begin(name);
  }
  const { state } = await begin(first.name);
  expect((await bridge.servers.completeLogin({ state, code: "any" }, ada)).server).toBe(first.name);
  for (const { echo } of [first, second]) expect(await echo()).toBe("mine");
});
