import { generateKeyPairSync, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { HealthState, LoginState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { clientDocument } from "#runtime/config/public-url.ts";
import { until } from "#runtime/time/until.ts";
import { auditOf, openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { asOperator, asPrincipal } from "../../../../test/harness/callers.ts";
import { type Bridge, call, openBridge } from "../../testing/bridge.ts";
import { type AuthorizationServer, agree, openAuthorizationServer } from "./authorization-server.ts";
import { openProtectedServer, type ProtectedServer, plain, type Variant } from "./protected-server.ts";

const redirectUri = "http://127.0.0.1:9/callback";
const env = { TOOLBUS_MCP_LOGIN_KEY: randomBytes(32).toString("base64") };
const bytes = { encode: (value: Uint8Array) => value, decode: (value: Uint8Array) => value };
const rawLogins = { bucket: "toolbus_mcp_logins", prefix: "", codec: bytes } as const;
const ada = asPrincipal("ada");

let bus: TestBus;
let left: Bridge;
let right: Bridge;

beforeAll(async () => {
  bus = await openTestBus();
  [left, right] = await Promise.all([openBridge(bus, env), openBridge(bus, env)]);
});
afterAll(async () => {
  await Promise.all([left[Symbol.asyncDispose](), right[Symbol.asyncDispose]()]);
  await bus[Symbol.asyncDispose]();
});

let sessions = 0;
const scopeOf = (principal: string) => ({ sessionId: `s-${sessions++}`, agent: "a1", principal });

async function offered(bridge: Bridge, scope: object, source: object) {
  const { tools, sources } = await bridge.provider.getProvidedTools({ scope, sources: [source] });
  return { tools: tools.map(({ tool }) => tool?.name), status: sources[0] };
}

async function logIn(bridge: Bridge, server: string, caller = ada) {
  const { authorizationUrl, state } = await bridge.servers.beginLogin({ server, redirectUri }, caller);
  const back = (await agree(authorizationUrl, redirectUri)).searchParams;
  const answer = { state, code: back.get("code") ?? "", issuer: back.get("iss") ?? "" };
  expect(back.get("state")).toBe(state);
  return {
    ...(await bridge.servers.completeLogin(answer, caller)),
    answer,
    authorizationUrl: new URL(authorizationUrl),
  };
}

describe("a server that asks for a token", () => {
  let authorizationServer: AuthorizationServer;
  let server: ProtectedServer;

  beforeAll(async () => {
    authorizationServer = await openAuthorizationServer();
    server = await openProtectedServer(authorizationServer);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await authorizationServer[Symbol.asyncDispose]();
  });

  test("says that it needs a login, is asked no more, and connects by itself when its principal has agreed", async () => {
    const scope = scopeOf("ada");
    const source = { name: "notes", config: { url: server.url } };
    const before = await offered(left, scope, source);
    expect(before.tools).toEqual([]);
    expect(before.status?.reason).toContain("notes needs login: toolbus mcp login notes");
    await expect(call(left, source, "echo", {}, { scope })).rejects.toThrow("needs login");
    expect(server.authorizations).toEqual([undefined]);
    const { connections } = await right.servers.listConnections({ sessionId: scope.sessionId });
    expect(connections).toMatchObject([{ login: LoginState.NEEDED, health: HealthState.UNHEALTHY }]);
    const { authorizationUrl, principal } = await logIn(right, "notes");
    expect(principal).toBe("ada");
    const outside = await offered(left, { sessionId: "", agent: "", principal: "" }, source);
    expect(outside.status?.reason).toContain("outside of a session, as here, nobody is logged in");
    expect(authorizationUrl.searchParams.get("resource")).toBe(server.url);
    expect(authorizationUrl.searchParams.get("code_challenge_method")).toBe("S256");
    await until(async () => (await offered(left, scope, source)).tools.length > 0);
    const { output } = await call(left, source, "echo", { text: "mine" }, { scope });
    expect(output).toBe("mine");
    expect(authorizationServer.tokenRequests.map((one) => one.get("resource"))).toEqual([server.url]);
  });

  test("renews a token once for all connections of all instances, with the refresh token that was rotated", async () => {
    const source = { name: "notes", config: { url: server.url } };
    const [one, other] = [scopeOf("ada"), scopeOf("ada")];
    for (let round = 1; round <= 2; round++) {
      const before = refreshes(authorizationServer);
      await forgetAccessTokens(server, authorizationServer);
      const calls = [1, 2, 3, 4].flatMap((count) => [
        call(left, source, "echo", { text: `left ${count}` }, { scope: one }),
        call(right, source, "echo", { text: `right ${count}` }, { scope: other }),
      ]);
      expect((await Promise.all(calls)).map(({ output }) => output)).toHaveLength(8);
      expect(refreshes(authorizationServer)).toBe(before + 1);
    }
  });

  test("SEC-3 a login is for who began it, once, and nobody else uses it", async () => {
    const eve = asPrincipal("eve");
    await expect(left.servers.beginLogin({ server: "notes", redirectUri }, eve)).rejects.toMatchObject({
      code: Code.NotFound,
    });
    const scope = scopeOf("eve");
    const source = { name: "notes", config: { url: server.url } };
    expect((await offered(left, scope, source)).status?.reason).toContain("needs login");
    const { authorizationUrl, state } = await left.servers.beginLogin({ server: "notes", redirectUri }, ada);
    const code = (await agree(authorizationUrl, redirectUri)).searchParams.get("code") ?? "";
    const answer = { state, code, issuer: authorizationServer.issuer };
    await expect(left.servers.completeLogin(answer, eve)).rejects.toThrow("no such login");
    await expect(left.servers.completeLogin({ ...answer, state: `${state}x` }, ada)).rejects.toThrow("no such login");
    expect(await left.servers.completeLogin(answer, ada)).toMatchObject({ server: "notes", principal: "ada" });
    await expect(right.servers.completeLogin(answer, ada)).rejects.toThrow("no such login");
    expect((await offered(left, scope, source)).tools).toEqual([]);
    await expect(
      left.servers.beginLogin({ server: "notes", redirectUri: "https://eve.example/callback" }, ada),
    ).rejects.toThrow("redirect_uri");
  });

  test("SEC-6 what is stored and told of it holds no token", async () => {
    const tokens = server.authorizations.flatMap((text) => (text ? [text.slice("Bearer ".length)] : []));
    expect(tokens.length).toBeGreaterThan(0);
    const stored: string[] = [];
    for await (const { value } of createBucket(bus, rawLogins).list())
      stored.push(Buffer.from(value).toString("latin1"));
    const { connections } = await left.servers.listConnections({});
    const told = JSON.stringify([stored, connections], (_, value) =>
      typeof value === "bigint" ? String(value) : value,
    );
    expect(stored.length).toBeGreaterThan(0);
    expect(tokens.filter((token) => told.includes(token))).toEqual([]);
    expect(told).not.toContain(server.url);
  });

  test("asks for a further scope when a call needs one, and keeps those that it has", async () => {
    const scope = scopeOf("ada");
    const source = { name: "notes", config: { url: server.url } };
    await call(left, source, "echo", { text: "read" }, { scope });
    server.variant = { ...plain, callScope: "write" };
    await expect(call(left, source, "echo", {}, { scope })).rejects.toMatchObject({ code: Code.FailedPrecondition });
    const { connections } = await right.servers.listConnections({ sessionId: scope.sessionId });
    expect(connections).toMatchObject([{ login: LoginState.NEEDED, health: HealthState.HEALTHY }]);
    const { authorizationUrl } = await logIn(left, "notes");
    expect(authorizationUrl.searchParams.get("scope")?.split(" ")).toEqual(expect.arrayContaining(["read", "write"]));
    expect((await call(left, source, "echo", { text: "write" }, { scope })).output).toBe("write");
    server.variant = { ...plain, callScope: "write", isNeverEnough: true };
    await expect(call(left, source, "echo", {}, { scope })).rejects.toThrow("which the login has already");
    server.variant = plain;
    await logIn(left, "notes");
  });

  test("forgets a login, and has it revoked", async () => {
    const scope = scopeOf("ada");
    const source = { name: "notes", config: { url: server.url } };
    await call(left, source, "echo", { text: "in" }, { scope });
    let revoked = 0;
    authorizationServer.provider.once("grant.revoked", () => (revoked += 1));
    await right.servers.deleteLogin({ server: "notes" }, ada);
    expect(revoked).toBe(1);
    await expect(call(left, source, "echo", {}, { scope })).rejects.toThrow("needs login");
  });

  test("ORCH-11 the trail says what became of each login, and whose it is; of what is made up it says nothing", async () => {
    await offered(left, scopeOf("ida"), { name: "diary", config: { url: server.url } });
    const ida = asPrincipal("ida");
    await logIn(left, "diary", ida);
    const { state } = await right.servers.beginLogin({ server: "diary", redirectUri }, ida);
    const answer = { state, error: "access_denied", issuer: authorizationServer.issuer };
    await expect(left.servers.completeLogin({ ...answer, state: `${state}x` }, ida)).rejects.toThrow("no such login");
    await expect(left.servers.completeLogin(answer, ida)).rejects.toThrow("access_denied");
    await left.servers.deleteLogin({ server: "diary" }, ida);
    const told = await until(async () => {
      const events = (await auditOf(bus, AuditKind.LOGIN)).filter(({ principal }) => principal === "ida");
      return events.length === 5 && events;
    });
    expect(told.map(({ rule }) => rule).toSorted()).toEqual(["begun", "begun", "finished", "forgotten", "refused"]);
    expect(new Set(told.map(({ tool }) => tool))).toEqual(new Set(["diary"]));
    expect(told.find(({ rule }) => rule === "refused")?.message).toContain("access_denied");
  });
});

describe("what servers and authorization servers may say of themselves", () => {
  test.for([
    ["at the path of the server", { metadataPath: "/.well-known/oauth-protected-resource/mcp", challenge: "" }],
    ["at the root", { metadataPath: "/.well-known/oauth-protected-resource", challenge: "Bearer" }],
    ["where the refusal says", { metadataPath: "/elsewhere.json", challenge: 'Bearer resource_metadata="METADATA"' }],
    ["with a scope in the refusal", { ...plain, challenge: 'Bearer resource_metadata="METADATA", scope="admin"' }],
  ] as const)("finds the metadata %s", async ([, variant]) => {
    await using authorizationServer = await openAuthorizationServer();
    await using server = await openProtectedServer(authorizationServer, variant);
    const scope = scopeOf("ada");
    const source = { name: "notes", config: { url: server.url } };
    await offered(left, scope, source);
    const { authorizationUrl } = await logIn(left, "notes");
    const scopes = authorizationUrl.searchParams.get("scope")?.split(" ");
    expect(scopes).toContain(variant.challenge.includes("admin") ? "admin" : "read");
    expect((await call(left, source, "echo", { text: "in" }, { scope })).output).toBe("in");
  });

  const odd: [string, Variant, string][] = [
    ["another resource", { ...plain, metadata: { resource: "https://elsewhere.example/mcp" } }, "another resource"],
    ["an authorization server without TLS", naming("http://login.example"), "neither https nor loopback"],
    ["an internal address", naming("https://169.254.169.254/latest"), "not a public one"],
    ["an internal address in the refusal", challenging("https://10.1.2.3/secret"), "not a public one"],
    ["another scheme", challenging("file:///etc/passwd"), "neither https nor loopback"],
    ["a redirect to another origin", { ...plain, document: redirecting("http://127.0.0.1:1/") }, "not followed"],
    ["a document without end", { ...plain, document: endless }, "larger than 262144 bytes"],
  ];

  test.for(odd)("SEC-5 refuses %s", async ([, variant, text]) => {
    await using authorizationServer = await openAuthorizationServer();
    await using server = await openProtectedServer(authorizationServer, variant);
    await offered(left, scopeOf("ada"), { name: "odd", config: { url: server.url } });
    const begun = left.servers.beginLogin({ server: "odd", redirectUri }, ada);
    await expect(begun).rejects.toThrow(text);
    expect(authorizationServer.requests).toEqual([]);
  });

  const unfit: [string, (body: string) => string, string][] = [
    ["no PKCE", (body) => body.replace(/"code_challenge_methods_supported":\[[^\]]*\],?/, ""), "PKCE"],
    [
      "another issuer",
      (body) => body.replace(/"issuer":"[^"]*"/, '"issuer":"https://login.example"'),
      "Issuer mismatch",
    ],
    [
      "a token endpoint without TLS",
      (body) => body.replace(/"token_endpoint":"[^"]*"/, '"token_endpoint":"http://login.example/token"'),
      "neither https nor loopback",
    ],
    ["no registration", (body) => body.replace(/"registration_endpoint":"[^"]*",?/, ""), "auth.clientId"],
  ];

  test.for(unfit)("SEC-5 refuses an authorization server with %s", async ([, rewrite, text]) => {
    await using authorizationServer = await openAuthorizationServer();
    authorizationServer.rewrite = (_, body) => rewrite(body);
    await using server = await openProtectedServer(authorizationServer);
    await offered(left, scopeOf("ada"), { name: "odd", config: { url: server.url } });
    await expect(left.servers.beginLogin({ server: "odd", redirectUri }, ada)).rejects.toThrow(text);
    expect(authorizationServer.requests.filter((one) => one.startsWith("POST"))).toEqual([]);
  });

  test("SEC-5 takes no code from another issuer, and tells it no secret", async () => {
    await using authorizationServer = await openAuthorizationServer();
    await using server = await openProtectedServer(authorizationServer);
    await offered(left, scopeOf("ada"), { name: "mixed", config: { url: server.url } });
    const { authorizationUrl, state } = await left.servers.beginLogin({ server: "mixed", redirectUri }, ada);
    const code = (await agree(authorizationUrl, redirectUri)).searchParams.get("code") ?? "";
    const completed = left.servers.completeLogin({ state, code, issuer: "https://evil.example" }, ada);
    await expect(completed).rejects.toMatchObject({ code: Code.FailedPrecondition });
    expect(authorizationServer.tokenRequests).toEqual([]);
    const again = await left.servers.beginLogin({ server: "mixed", redirectUri }, ada);
    const refused = left.servers.completeLogin(
      { state: again.state, error: "access_denied", issuer: authorizationServer.issuer },
      ada,
    );
    await expect(refused).rejects.toThrow("access_denied");
  });
});

describe("clients that an operator has registered", () => {
  const secret = "a secret: 100% of 32+ characters, and umlauts in none";

  test("a code is exchanged with the client's secret, which goes to its own issuer alone", async () => {
    const client = {
      client_id: "suite",
      client_secret: secret,
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: "client_secret_basic" as const,
    };
    await using authorizationServer = await openAuthorizationServer({ configuration: { clients: [client] } });
    await using server = await openProtectedServer(authorizationServer);
    const auth = {
      clientId: "suite",
      clientSecret: "$" + "{secret:SUITE}",
      issuer: authorizationServer.issuer,
      scopes: ["read", "write"],
    };
    const runs = { TOOLBUS_MCP_RUN_SERVERS: "http", TOOLBUS_MCP_RUN_ALLOW: "127.0.0.0/8" };
    await using bridge = await openBridge(bus, { ...env, ...runs, TOOLBUS_SECRET_SUITE: secret });
    const scope = scopeOf("ada");
    const source = { name: "registered", config: { url: server.url, auth } };
    await offered(bridge, scope, source);
    const brought = {
      name: "brought",
      config: { url: server.url, auth: { ...auth, clientSecret: "" } },
      fromRun: true,
    };
    const ofRun = await offered(bridge, { ...scopeOf("ada"), runId: "r1" }, brought);
    expect(ofRun.status?.reason).toContain("needs login");
    await offered(bridge, scopeOf("ada"), source);
    const { scopes } = await logIn(bridge, "registered");
    expect(scopes).toEqual(expect.arrayContaining(["read", "write"]));
    expect((await call(bridge, source, "echo", { text: "in" }, { scope })).output).toBe("in");
    expect(authorizationServer.requests).not.toContain("POST /reg");
    let revoked = 0;
    authorizationServer.provider.once("grant.revoked", () => (revoked += 1));
    await bridge.servers.deleteLogin({ server: "registered" }, ada);
    expect(revoked).toBe(1);

    const elsewhere = {
      name: "elsewhere",
      config: { url: server.url, auth: { ...auth, issuer: "https://login.example" } },
    };
    await offered(bridge, scope, elsewhere);
    await expect(bridge.servers.beginLogin({ server: "elsewhere", redirectUri }, ada)).rejects.toThrow(
      "client's secret",
    );
  });

  test.for(["a secret", "a key"])("with %s, a client gets its own tokens, and nobody logs in", async (proof) => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const jwks = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "c1", alg: "ES256", use: "sig" }] };
    const isKey = proof === "a key";
    const client = {
      ...{
        client_id: "robot",
        redirect_uris: [],
        response_types: [],
        grant_types: ["client_credentials"],
        scope: "read write admin",
      },
      ...(isKey
        ? {
            jwks,
            token_endpoint_auth_method: "private_key_jwt" as const,
            token_endpoint_auth_signing_alg: "ES256" as const,
          }
        : { client_secret: secret }),
    };
    await using authorizationServer = await openAuthorizationServer({ configuration: { clients: [client as never] } });
    await using server = await openProtectedServer(authorizationServer);
    const named = "$" + "{secret:ROBOT}";
    const auth = {
      clientId: "robot",
      issuer: authorizationServer.issuer,
      grant: "client_credentials",
      ...(isKey ? { privateKey: named } : { clientSecret: named }),
    };
    await using bridge = await openBridge(bus, { ...env, TOOLBUS_SECRET_ROBOT: isKey ? pem : secret });
    const scope = scopeOf("ada");
    const source = { name: `robot-${isKey}`, config: { url: server.url, auth } };
    expect(await offered(bridge, scope, source)).toMatchObject({ status: { available: true, reason: "" } });
    await forgetAccessTokens(server, authorizationServer);
    expect((await call(bridge, source, "echo", { text: "again" }, { scope })).output).toBe("again");
    expect(authorizationServer.tokenRequests.map((one) => one.get("grant_type"))).toEqual([
      "client_credentials",
      "client_credentials",
    ]);
    await expect(bridge.servers.beginLogin({ server: `robot-${isKey}`, redirectUri }, ada)).rejects.toThrow(
      "nobody logs in",
    );
  });

  test("a suite with a public URL is known by its own document, and registers nowhere", async () => {
    const publicUrl = "https://toolbus.example/base";
    const document = {
      client_id: `${publicUrl}/client-metadata.json`,
      ...clientDocument([redirectUri.replace(":9", ""), `${publicUrl}/oauth/callback`]),
    };
    const fetchDocument = async () => Response.json(document);
    const features = { clientIdMetadataDocument: { enabled: true, ack: "draft-02" } };
    await using authorizationServer = await openAuthorizationServer({
      configuration: { features, fetch: fetchDocument } as never,
    });
    await using server = await openProtectedServer(authorizationServer);
    await using bridge = await openBridge(bus, { ...env, TOOLBUS_PUBLIC_URL: publicUrl });
    const scope = scopeOf("ada");
    const source = { name: "published", config: { url: server.url } };
    await offered(bridge, scope, source);
    const { authorizationUrl } = await logIn(bridge, "published");
    expect(authorizationUrl.searchParams.get("client_id")).toBe(document.client_id);
    expect((await call(bridge, source, "echo", { text: "in" }, { scope })).output).toBe("in");
    expect(authorizationServer.requests).not.toContain("POST /reg");
  });

  test("SEC-4 what sessions share is for operators to log in to", async () => {
    await using authorizationServer = await openAuthorizationServer();
    await using server = await openProtectedServer(authorizationServer);
    const config = { url: server.url, share: "global" };
    await offered(left, scopeOf("ada"), { name: "shared", config });
    await expect(left.servers.beginLogin({ server: "shared", redirectUri }, ada)).rejects.toMatchObject({
      code: Code.PermissionDenied,
    });
    const { principal } = await logIn(left, "shared", asOperator("root"));
    expect(principal).toBe("");
    expect(
      (await call(right, { name: "shared", config }, "echo", { text: "all" }, { scope: scopeOf("eve") })).output,
    ).toBe("all");
  });

  test("without a key, nobody can log in, and is told what to set", async () => {
    await using authorizationServer = await openAuthorizationServer();
    await using server = await openProtectedServer(authorizationServer);
    await using bridge = await openBridge(bus);
    const { status } = await offered(bridge, scopeOf("ada"), { name: "keyless", config: { url: server.url } });
    expect(status?.reason).toContain("needs login");
    await expect(bridge.servers.beginLogin({ server: "keyless", redirectUri }, ada)).rejects.toThrow(
      "TOOLBUS_MCP_LOGIN_KEY",
    );
  });
});

function naming(authorizationServer: string): Variant {
  return { ...plain, metadata: { authorization_servers: [authorizationServer] } };
}

function challenging(metadata: string): Variant {
  return { ...plain, challenge: `Bearer resource_metadata="${metadata}"` };
}

function redirecting(location: string): NonNullable<Variant["document"]> {
  return ({ url }, response) => {
    if (!url?.startsWith("/.well-known/")) return false;
    response.writeHead(302, { location }).end();
    return true;
  };
}

function endless({ url }: IncomingMessage, response: ServerResponse): boolean {
  if (!url?.startsWith("/.well-known/")) return false;
  response.writeHead(200, { "content-type": "application/json" }).end(`{"resource":"${"x".repeat(300_000)}"}`);
  return true;
}

function refreshes({ tokenRequests }: AuthorizationServer): number {
  return tokenRequests.filter((one) => one.get("grant_type") === "refresh_token").length;
}

/** Those that the server has seen hold no more. */
async function forgetAccessTokens(
  { authorizations }: ProtectedServer,
  { provider }: AuthorizationServer,
): Promise<void> {
  for (const text of new Set(authorizations)) {
    const token = text?.slice("Bearer ".length) ?? "";
    await (await provider.AccessToken.find(token))?.destroy();
    await (await provider.ClientCredentials.find(token))?.destroy();
  }
}
