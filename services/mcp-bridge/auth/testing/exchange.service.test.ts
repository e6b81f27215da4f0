import { randomBytes } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { errors } from "oidc-provider";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HealthState, LoginState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import {
  keyOfSubject,
  sealSubjectToken,
  subjectTokens,
  wantedSubjects,
} from "#runtime/rpc/access/tokens/subject-tokens.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { asPrincipal } from "../../../../test/harness/callers.ts";
import { type Bridge, call, openBridge } from "../../testing/bridge.ts";
import { listen } from "../../testing/servers/http-server.ts";
import { type AuthorizationServer, openAuthorizationServer, TOKEN_EXCHANGE } from "./authorization-server.ts";
import { openProtectedServer, type ProtectedServer } from "./protected-server.ts";

const secret = "a secret of at least 32 characters";
const env = { TOOLBUS_MCP_LOGIN_KEY: randomBytes(32).toString("base64"), TOOLBUS_SECRET_SUITE: secret };
const redirectUri = "http://127.0.0.1:9/callback";
const client = {
  ...{ client_id: "suite", client_secret: secret, redirect_uris: [], response_types: [] },
  grant_types: [TOKEN_EXCHANGE],
};

let bus: TestBus;
let left: Bridge;
let right: Bridge;
let authorizationServer: AuthorizationServer;
let server: ProtectedServer;
let refusal: Error | undefined;

/** As the authorization server reads it. */
const subjectOf = (principal: string, more = "") => `header.${principal}.signature${more}`;

beforeAll(async () => {
  bus = await openTestBus();
  [left, right] = await Promise.all([openBridge(bus, env), openBridge(bus, env)]);
  authorizationServer = await openAuthorizationServer({
    configuration: { clients: [client as never] },
    personOf(token) {
      if (refusal) throw refusal;
      return token.split(".")[1] ?? "";
    },
  });
  server = await openProtectedServer(authorizationServer);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await authorizationServer[Symbol.asyncDispose]();
  await Promise.all([left[Symbol.asyncDispose](), right[Symbol.asyncDispose]()]);
  await bus[Symbol.asyncDispose]();
});

let sessions = 0;
const scopeOf = (principal: string) => ({ sessionId: `s-${sessions++}`, agent: "a1", principal });
const authOf = (more: object = {}) => ({
  ...{ grant: "token_exchange", clientId: "suite", clientSecret: "$" + "{secret:SUITE}", scopes: ["read"] },
  ...{ issuer: authorizationServer.issuer, ...more },
});
const sourceOf = (more: object = {}) => ({ name: "notes", config: { url: server.url, auth: authOf(more) } });

/** What a gateway does once the token of the principal is wanted. */
async function handOver(principal: string, { token = subjectOf(principal), expiresAtMs = Date.now() + 60_000 } = {}) {
  const key = keyOfSubject(principal);
  const wanted = createBucket(bus, wantedSubjects);
  await until(async () => (await wanted.read(key)) !== undefined);
  const publicKey = (await wanted.read(key))!.value;
  await createBucket(bus, subjectTokens).put(key, await sealSubjectToken({ token, principal, expiresAtMs }, publicKey));
}

async function offered(bridge: Bridge, scope: object, source: object = sourceOf()) {
  const { tools, sources } = await bridge.provider.getProvidedTools({ scope, sources: [source] });
  return { tools: tools.map(({ tool }) => tool?.name), reason: sources[0]?.reason ?? "" };
}

async function personsOf(from: number) {
  const { AccessToken } = authorizationServer.provider;
  const tokens = new Set(server.authorizations.slice(from).flatMap((text) => text?.slice("Bearer ".length) ?? []));
  return Promise.all([...tokens].map(async (token) => (await AccessToken.find(token))?.accountId));
}

const exchanges = () => authorizationServer.tokenRequests.filter((one) => one.get("grant_type") === TOKEN_EXCHANGE);

describe("a server whose authorization server exchanges the tokens of persons", () => {
  test("gets a token of the person for the one with which the person came to the gateway", async () => {
    const scope = scopeOf("ada");
    const [{ tools }] = await Promise.all([offered(left, scope), handOver("ada")]);
    expect(tools).toContain("echo");
    expect((await call(left, sourceOf(), "echo", { text: "mine" }, { scope })).output).toBe("mine");
    expect(await personsOf(0)).toEqual(["ada"]);
    expect(exchanges()).toHaveLength(1);
    expect(Object.fromEntries(exchanges()[0]!)).toMatchObject({
      ...{ subject_token: subjectOf("ada"), subject_token_type: "urn:ietf:params:oauth:token-type:access_token" },
      ...{ resource: server.url, scope: "read" },
    });
    const { connections } = await right.servers.listConnections({ sessionId: scope.sessionId });
    expect(connections).toMatchObject([{ login: LoginState.GRANTED, health: HealthState.HEALTHY }]);
  });

  test("gets for each person a token of that one, exchanged once for all connections", async () => {
    const [from, before] = [server.authorizations.length, exchanges().length];
    await Promise.all([offered(right, scopeOf("eve")), handOver("eve")]);
    const calls = ["ada", "eve", "ada", "eve"].map(async (name, index) => {
      const scope = scopeOf(name);
      return (await call(index < 2 ? left : right, sourceOf(), "echo", { text: name }, { scope })).output;
    });
    expect(await Promise.all(calls)).toEqual(["ada", "eve", "ada", "eve"]);
    expect((await personsOf(from)).toSorted()).toEqual(["ada", "eve"]);
    expect(exchanges().length).toBe(before + 1);
  });

  test("is asked by the audience that the entry names", async () => {
    const source = { ...sourceOf({ audience: server.url }), name: "by-audience" };
    expect((await call(left, source, "echo", { text: "in" }, { scope: scopeOf("ada") })).output).toBe("in");
    expect(exchanges().at(-1)?.get("audience")).toBe(server.url);
    expect(exchanges().at(-1)?.has("resource")).toBe(false);
  });

  test("gets another token by another exchange, and no refresh token is used", async () => {
    const before = exchanges().length;
    for (const text of new Set(server.authorizations))
      await (await authorizationServer.provider.AccessToken.find(text?.slice("Bearer ".length) ?? ""))?.destroy();
    const scope = scopeOf("ada");
    expect((await call(left, sourceOf(), "echo", { text: "again" }, { scope })).output).toBe("again");
    expect(exchanges().length).toBe(before + 1);
    expect(authorizationServer.tokenRequests.map((one) => one.get("grant_type"))).not.toContain("refresh_token");
  });

  test("is refused in words for who came by a key, and for nobody", async () => {
    const before = exchanges().length;
    const refused = call(left, sourceOf(), "echo", {}, { scope: scopeOf("robot") });
    await expect(refused).rejects.toMatchObject({ code: Code.FailedPrecondition });
    await expect(refused).rejects.toThrow(/come to the gateway with a JWT.*no token of robot is here: keys and calls/);
    expect((await offered(left, { sessionId: "", agent: "", principal: "" })).reason).toContain("nobody is logged in");
    expect(exchanges().length).toBe(before);
    await expect(left.servers.beginLogin({ server: "notes", redirectUri }, asPrincipal("robot"))).rejects.toThrow(
      "nobody logs in",
    );
  });

  test("is refused once the token of the person has ended, and connects by itself with a new one", async () => {
    const scope = scopeOf("carl");
    const soon = { expiresAtMs: Date.now() + 1 };
    await Promise.all([offered(left, scope), handOver("carl", soon)]);
    const later = scopeOf("carl");
    const { reason, tools } = await offered(right, later);
    expect(reason).toContain("the token of carl has ended: send a request with a new one, which can resume the run");
    expect(tools).toEqual([]);
    await handOver("carl");
    await until(async () => (await offered(right, later)).tools.length > 0);
  });

  test("is refused with the code of its authorization server, and no token", async () => {
    const token = subjectOf("dora");
    refusal = new errors.InvalidTarget(`${token} is not for you`);
    try {
      const [{ reason }] = await Promise.all([offered(left, scopeOf("dora")), handOver("dora")]);
      expect(reason).toContain("the exchange is refused there: invalid_target");
      expect(reason).not.toContain(token);
    } finally {
      refusal = undefined;
    }
  });

  test("SEC-7 nothing that is stored or told holds a token", async () => {
    const tokens = server.authorizations.flatMap((text) => (text ? [text.slice("Bearer ".length)] : []));
    const secrets = [...tokens, ...["ada", "eve", "carl", "dora"].map((name) => subjectOf(name)), "of no use"];
    const bytes = { encode: (value: Uint8Array) => value, decode: (value: Uint8Array) => value };
    const told: string[] = [];
    for (const name of ["toolbus_mcp_logins", "toolbus_subject_tokens"] as const)
      for await (const { value } of createBucket(bus, { bucket: name, prefix: "", codec: bytes }).list())
        told.push(Buffer.from(value).toString("latin1"));
    expect(told.length).toBeGreaterThan(6);
    const { connections } = await left.servers.listConnections({});
    told.push(JSON.stringify(connections, (_, value) => (typeof value === "bigint" ? String(value) : value)));
    expect(secrets.filter((one) => told.some((text) => text.includes(one)))).toEqual([]);
  });

  test("a logout forgets what was exchanged and what for, and has it revoked", async () => {
    const ada = asPrincipal("ada");
    const { AccessToken } = authorizationServer.provider;
    await call(left, sourceOf(), "echo", {}, { scope: scopeOf("ada") });
    const token = server.authorizations.at(-1)?.slice("Bearer ".length) ?? "";
    expect(await AccessToken.find(token)).toMatchObject({ accountId: "ada" });
    await left.servers.deleteLogin({ server: "notes" }, ada);
    expect(await AccessToken.find(token)).toBeUndefined();
    const key = keyOfSubject("ada");
    expect(await createBucket(bus, subjectTokens).read(key)).toBeUndefined();
    await expect(call(left, sourceOf(), "echo", {}, { scope: scopeOf("ada") })).rejects.toThrow("no token of ada");
  });
});

describe("SEC-7 whom the token of a person is not shown", () => {
  test("an authorization server that the entry does not name", async () => {
    await using elsewhere = await openAuthorizationServer();
    await using odd = await openProtectedServer(elsewhere);
    const source = { name: "odd", config: { url: odd.url, auth: authOf() } };
    const { reason } = await offered(left, scopeOf("eve"), source);
    expect(reason).toContain(`it is not ${authorizationServer.issuer} that gives tokens for it`);
    expect(elsewhere.requests.filter((one) => one.startsWith("POST"))).toEqual([]);
  });

  test("another place to which the token endpoint redirects", async () => {
    const asked: string[] = [];
    await using redirecting = await listen((request, response) => {
      asked.push(request.url ?? "");
      response.writeHead(307, { location: "/elsewhere" }).end();
    });
    await using odd = await openAuthorizationServer();
    odd.rewrite = (_, body) => body.replace(/("token_endpoint":"[^"]*:)\d+/, `$1${redirecting.port}`);
    await using server = await openProtectedServer(odd);
    const source = { name: "odd", config: { url: server.url, auth: authOf({ issuer: odd.issuer }) } };
    expect((await offered(left, scopeOf("eve"), source)).reason).toContain("redirects, which is not followed");
    expect(asked).toEqual(["/token"]);
  });

  test.for([
    ["without an issuer", { issuer: "" }, {}, "auth.issuer"],
    ["without a client", { clientId: "", clientSecret: "" }, {}, "auth.clientId"],
    ["that sessions share", {}, { share: "global" }, "is shared"],
  ] as const)("a server %s", async ([, auth, more, text]) => {
    const source = { name: "odd", config: { url: server.url, ...more, auth: authOf(auth) } };
    expect((await offered(left, scopeOf("eve"), source)).reason).toContain(text);
  });

  test("a server that a run brings", async () => {
    const source = { ...sourceOf({ clientSecret: "" }), fromRun: true };
    expect((await offered(left, { ...scopeOf("eve"), runId: "r1" }, source)).reason).toContain("exchanges the token");
  });
});
