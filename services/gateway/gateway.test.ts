import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { create, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ServerReflection, type ServerReflectionRequestSchema } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "#gen/health/v1/health_pb.ts";
import { AgentService, ListAgentsResponseSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { detailOf } from "#runtime/failure/error-detail.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { type Caller, callerOf } from "#runtime/rpc/identity.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus } from "../../test/harness/bus.ts";
import { internalServices, publicServices } from "../processes.ts";
import { readConfig } from "./config.ts";
import { openService } from "./service.ts";

type ReflectionQuestion = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

const key = "a-key-of-some-length";
const logger = pino({ level: "silent" });
const stack = new AsyncDisposableStack();
let url = "";
/** Headers by which services speak to their own instances. */
const ownOfServices = [
  ...["toolbus-bridge-hops", "toolbus-bridge-own-part", "toolbus-warm-only"],
  ...["toolbus-attachment", "toolbus-holder", "toolbus-canceled"],
];
/** What the service behind the gateway was told of each request. */
const seen: { headers: Headers; caller: Caller }[] = [];
let aborted = Promise.withResolvers<void>();

beforeAll(async () => {
  const bus = stack.use(await openTestBus());
  stack.use(
    await serveOnBus(bus, {
      service: "tool-router",
      logger,
      routes: (router) => {
        router.service(AgentService, {
          listAgents(_request, context) {
            seen.push({ headers: context.requestHeader, caller: callerOf(context) });
            context.responseHeader.set("x-answered-by", "router");
            context.responseTrailer.set("x-trailer", "end");
            return create(ListAgentsResponseSchema, { agents: [{ origin: "rpc" }] });
          },
          getAgent() {
            throw new ConnectError("no agent x", Code.NotFound, { "x-why": "unknown", "toolbus-holder": "r1" }, [
              { desc: ListAgentsResponseSchema, value: { agents: [{ origin: "detail" }] } },
            ]);
          },
          async *watchAgents(_request, context) {
            yield {};
            yield { refusedFiles: [{ file: "one" }] };
            context.signal.addEventListener("abort", () => aborted.resolve());
            await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
          },
        });
      },
    }),
  );
  const { url: natsUrl, credentials } = bus.server;
  const config = readConfig({
    NATS_URL: natsUrl,
    TOOLBUS_BUS_CREDENTIALS: credentials,
    TOOLBUS_HTTP_PORT: "0",
    TOOLBUS_API_KEYS: `alice:${key}`,
    TOOLBUS_JWT_ISSUER: "https://login.example/",
    TOOLBUS_JWT_AUDIENCE: "toolbus",
    TOOLBUS_JWT_JWKS_URL: await serveKeys(),
    TOOLBUS_JWT_ROLES_CLAIM: "roles",
    TOOLBUS_OPERATORS: "alice,carol",
    TOOLBUS_MAX_REQUEST_BYTES: "65536",
    TOOLBUS_CORS_ORIGINS: "https://page.example",
  });
  const telemetry = stack.use(await openTelemetry({ service: "gateway", hasMetrics: true }));
  const context = { name: "gateway", instance: "g1", logger, telemetry, signal: new AbortController().signal };
  const service = stack.use(await openService(config, context));
  url = String(service.announcement?.url);
});
afterAll(() => stack.disposeAsync());

const authorize: Interceptor = (next) => (request) => {
  request.header.set("authorization", `Bearer ${key}`);
  return next(request);
};
const transports = {
  "Connect over HTTP/1.1": () =>
    createConnectTransport({ baseUrl: url, httpVersion: "1.1", interceptors: [authorize] }),
  "Connect over h2c": () => createConnectTransport({ baseUrl: url, httpVersion: "2", interceptors: [authorize] }),
  "gRPC over h2c": () => createGrpcTransport({ baseUrl: url, interceptors: [authorize] }),
  "gRPC-Web over HTTP/1.1": () =>
    createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1", interceptors: [authorize] }),
};
type Name = keyof typeof transports;
const names = Object.keys(transports) as Name[];
const agentsBy = (name: Name) => createClient(AgentService, transports[name]());

describe("BUS-3 from outside, on one port", () => {
  it.each(names)("%s calls a service with metadata both ways", async (name) => {
    const headers: string[] = [];
    const response = await agentsBy(name).listAgents(
      {},
      {
        headers: {
          ...{ "x-mine": "1", "toolbus-identity": "mallory", authorization: `Bearer ${key}` },
          ...Object.fromEntries(ownOfServices.map((name) => [name, "1"])),
        },
        onHeader: (header) => headers.push(header.get("x-answered-by") ?? ""),
        onTrailer: (trailer) => headers.push(trailer.get("x-trailer") ?? ""),
      },
    );
    expect(response.agents.map((agent) => agent.origin)).toEqual(["rpc"]);
    expect(headers).toEqual(["router", "end"]);
    const { headers: told, caller } = seen.at(-1) ?? {};
    expect(told?.get("x-mine")).toBe("1");
    expect(caller, "what a client claims is dropped").toEqual({ principal: "alice", isOperator: true });
    expect(told?.get("authorization"), "keys stay outside").toBeNull();
    expect(
      ownOfServices.filter((name) => told?.has(name)),
      "what services tell each other is no client's to say",
    ).toEqual([]);
  });

  it.each(names)("%s keeps code, message, metadata and details of an error", async (name) => {
    const error = await agentsBy(name).getAgent({ name: "x" }).catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.NotFound, rawMessage: "no agent x" });
    if (!(error instanceof ConnectError)) return;
    expect(error.metadata.get("x-why")).toBe("unknown");
    expect(error.metadata.has("toolbus-holder"), "what services tell each other").toBe(false);
    expect(error.findDetails(ListAgentsResponseSchema)[0]?.agents[0]?.origin).toBe("detail");
  });

  it.each(names)("%s streams, and its leaving reaches the service", async (name) => {
    aborted = Promise.withResolvers();
    const refused: string[][] = [];
    const leaving = new AbortController();
    await expect(async () => {
      for await (const response of agentsBy(name).watchAgents({}, { signal: leaving.signal })) {
        refused.push(response.refusedFiles.map(({ file }) => file));
        if (refused.length === 2) leaving.abort();
      }
    }).rejects.toThrow();
    expect(refused).toEqual([[], ["one"]]);
    await aborted.promise;
  });

  it.each(names)("%s is told which field of a bad request is at fault", async (name) => {
    const error = await agentsBy(name).getAgent({ name: "no such!" }).catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.InvalidArgument, rawMessage: expect.stringContaining("name") });
    const fieldViolations = [{ field: "name", ruleId: "string.pattern", message: expect.stringContaining("match") }];
    expect(detailOf(error as ConnectError)).toMatchObject({ reason: Reason.INVALID_REQUEST, fieldViolations });
  });

  it.each(names)("%s is told of a method that a service lacks", async (name) => {
    const error = await agentsBy(name).deleteAgent({ name: "x" }).catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.Unimplemented });
  });

  it.each(names)("%s tells proxies to pass on each part of a stream as it comes", async (name) => {
    const told: (string | null)[] = [];
    const onHeader = (header: Headers) => told.push(header.get("x-accel-buffering"));
    for await (const _ of agentsBy(name).watchAgents({}, { onHeader })) break;
    expect(told).toEqual(["no"]);
  });

  it("a request over the limit is refused", async () => {
    const call = agentsBy("Connect over HTTP/1.1").applyAgent({
      agent: { name: "a", instructions: "x".repeat(70_000) },
    });
    await expect(call).rejects.toMatchObject({ code: Code.ResourceExhausted });
  });

  it("an error of the gateway's own call says nothing of how that fared on the bus", async () => {
    const headers = {
      "content-type": "application/connect+json",
      authorization: `Bearer ${key}`,
      "connect-timeout-ms": "300",
    };
    const body = Uint8Array.of(0, 0, 0, 0, 2, 0x7b, 0x7d);
    const response = await fetch(`${url}/toolbus.agent.v1.AgentService/WatchAgents`, { method: "POST", headers, body });
    const answer = await response.text();
    expect(answer).toContain("deadline_exceeded");
    expect(answer).not.toContain("toolbus-delivery");
  });

  it("a service that nobody serves is unavailable at once", async () => {
    const transport = createConnectTransport({ baseUrl: url, httpVersion: "2", interceptors: [authorize] });
    const call = createClient(AgentService, transport);
    await call.listAgents({});
    const { RunService } = await import("#gen/toolbus/run/v1/run_service_pb.ts");
    const runs = createClient(RunService, transport);
    await expect(runs.getRun({ runId: "r" })).rejects.toMatchObject({ code: Code.Unavailable });
  });
});

/** The issuer of tokens, and its server of keys. */
const signing = generateKeyPair("ES256");
async function serveKeys(): Promise<string> {
  const { publicKey } = await signing;
  const jwk = { ...(await exportJWK(publicKey)), kid: "k", alg: "ES256" };
  const server = createServer((_request, response) => response.end(JSON.stringify({ keys: [jwk] })));
  stack.defer(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

async function tokenOf(claims: Record<string, unknown>): Promise<string> {
  const all = { iss: "https://login.example/", aud: "toolbus", exp: Math.floor(Date.now() / 1_000) + 60, ...claims };
  return new SignJWT(all).setProtectedHeader({ alg: "ES256", kid: "k" }).sign((await signing).privateKey);
}

describe("tokens", () => {
  const ask = async (token: string) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    return fetch(`${url}/toolbus.agent.v1.AgentService/ListAgents`, { method: "POST", headers, body: "{}" });
  };

  it.each([
    ["names the principal", { sub: "bob" }, "bob", false],
    ["makes an operator by its role", { sub: "bob", roles: ["operator"] }, "bob", true],
    ["of a principal that is an operator makes one", { sub: "carol" }, "carol", true],
  ])("SEC-1 a token %s", async (_, claims, principal, isOperator) => {
    expect((await ask(await tokenOf(claims))).status).toBe(200);
    expect(seen.at(-1)?.caller).toEqual({ principal, isOperator });
    expect(seen.at(-1)?.headers.get("authorization")).toBeNull();
  });

  it("SEC-1 a token that does not hold is refused in words, by gRPC too", async () => {
    const expired = await tokenOf({ sub: "bob", exp: 1 });
    const answer = await ask(expired);
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({
      message: "the token has expired: get a new one",
      details: [{ debug: { reason: "REASON_CREDENTIALS_INVALID" } }],
    });
    const named: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${expired}`);
      return next(request);
    };
    const client = createClient(AgentService, createGrpcTransport({ baseUrl: url, interceptors: [named] }));
    await expect(client.listAgents({})).rejects.toMatchObject({
      code: Code.Unauthenticated,
      rawMessage: "the token has expired: get a new one",
    });
  });

  it.each([
    [
      "without an audience",
      { TOOLBUS_JWT_ISSUER: "i", TOOLBUS_JWT_JWKS_URL: "https://i.example" },
      /TOOLBUS_JWT_AUDIENCE/,
    ],
    ["without keys", { TOOLBUS_JWT_ISSUER: "i", TOOLBUS_JWT_AUDIENCE: "a" }, /TOOLBUS_JWT_JWKS_URL is not set/],
    ["by keys that anybody on the way can change", { TOOLBUS_JWT_JWKS_URL: "http://i.example" }, /https/],
    ["signed by a shared secret", { TOOLBUS_JWT_ALGORITHMS: "HS256" }, /TOOLBUS_JWT_ALGORITHMS/],
    ["of no issuer", { TOOLBUS_JWT_ISSUER: "" }, /TOOLBUS_JWT_ISSUER is ""/],
  ])("SEC-1 tokens %s are refused at the start", (_, env, says) => {
    expect(() => readConfig({ TOOLBUS_LOCAL_KEY: key, ...env })).toThrow(says);
  });
});

describe("keys", () => {
  it("a request without a key is refused, and told how to send one", async () => {
    const client = createClient(AgentService, createConnectTransport({ baseUrl: url, httpVersion: "2" }));
    const error = await client.listAgents({}).catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.Unauthenticated, rawMessage: expect.stringContaining("Authorization") });
    expect(detailOf(error as ConnectError)).toMatchObject({ reason: Reason.CREDENTIALS_INVALID });
  });

  it.each(["/metrics", "/v1/models", `/mcp/demo`, `/${AgentService.typeName}/ListAgents`])(
    "SEC-1 whoever gives no key at %s is asked for one as HTTP does it",
    async (path) => {
      const method = path.includes("ListAgents") || path.includes("mcp") ? "POST" : "GET";
      const headers = { "content-type": "application/json" };
      const refused = await fetch(`${url}${path}`, { method, headers, ...(method === "POST" && { body: "{}" }) });
      expect(refused.status).toBe(401);
      expect(refused.headers.get("www-authenticate")).toMatch(/^Bearer[^,]*$/);
    },
  );

  const key16 = "0123456789abcdef";
  it.each([
    ["without a key and without the word that none is wanted", {}, /TOOLBUS_API_KEYS is not set; .*TOOLBUS_AUTH=none/],
    ["beyond this machine without keys", { TOOLBUS_AUTH: "none", TOOLBUS_HTTP_HOST: "0.0.0.0" }, /a loopback address/],
    [
      "every page of the web, without keys",
      { TOOLBUS_AUTH: "none", TOOLBUS_CORS_ORIGINS: "*" },
      /TOOLBUS_CORS_ORIGINS/,
    ],
    ["keys that are blank", { TOOLBUS_API_KEYS: " " }, /TOOLBUS_API_KEYS is ""; expected a value/],
    ["a local key that is blank", { TOOLBUS_API_KEYS: `a:${key16}`, TOOLBUS_LOCAL_KEY: "" }, /TOOLBUS_LOCAL_KEY is ""/],
    ["a key for local", { TOOLBUS_API_KEYS: `local:${key16}` }, /other names than local/],
    ["one key for two", { TOOLBUS_API_KEYS: `a:${key16},b:${key16}` }, /another key for each principal/],
    ["one key twice", { TOOLBUS_API_KEYS: `a:${key16},a:${key16}` }, /another key for each principal/],
    ["a short local key", { TOOLBUS_LOCAL_KEY: "short" }, /TOOLBUS_LOCAL_KEY .* a longer key/],
    ["keys and none", { TOOLBUS_AUTH: "none", TOOLBUS_API_KEYS: `a:${key16}` }, /TOOLBUS_AUTH is "none"/],
  ] as const)("SEC-1 the gateway does not start with %s", (_, env, says) => {
    const read = () => readConfig(env);
    expect(read).toThrow(says);
    expect(read).not.toThrow(key16);
  });

  it("SEC-1 one principal may have two keys, for as long as one replaces the other", () => {
    const { apiKeys } = readConfig({ TOOLBUS_API_KEYS: `alice:${key16},alice:${key16}-new` });
    expect(apiKeys.map(({ principal }) => principal)).toEqual(["alice", "alice"]);
  });

  it("a list of keys that does not fit is refused without being repeated", () => {
    const read = () => readConfig({ TOOLBUS_API_KEYS: "alice:short-secret" });
    expect(read).toThrow(/TOOLBUS_API_KEYS/);
    expect(read).not.toThrow(/short-secret/);
  });
});

describe("what tools of gRPC expect", () => {
  const open = (headers: Record<string, string> = {}) => {
    const named: Interceptor = (next) => (request) => {
      for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
      return next(request);
    };
    return createGrpcTransport({ baseUrl: url, interceptors: [named] });
  };

  it("reflection lists the services and gives each file with its imports, without a key", async () => {
    const client = createClient(ServerReflection, open());
    async function* questions() {
      yield { messageRequest: { case: "listServices" as const, value: "" } };
      yield {
        messageRequest: { case: "fileContainingSymbol" as const, value: "toolbus.agent.v1.AgentService.GetAgent" },
      };
      yield { messageRequest: { case: "fileContainingSymbol" as const, value: "toolbus.nothing.Here" } };
    }
    const answers = await Array.fromAsync(client.serverReflectionInfo(questions()));
    const [list, file, nothing] = answers.map((answer) => answer.messageResponse);
    if (list?.case !== "listServicesResponse" || file?.case !== "fileDescriptorResponse") throw new Error("no answer");
    expect(list.value.service.map((service) => service.name)).toContain(ToolService.typeName);
    expect(list.value.service.map((service) => service.name)).not.toContain("toolbus.provider.v1.ToolProviderService");
    expect(file.value.fileDescriptorProto.length).toBeGreaterThan(3);
    expect(nothing?.case).toBe("errorResponse");
  });

  it("BUS-1 what is internal is offered to nobody outside: no method of it answers, and reflection knows none of its files", async () => {
    expect(internalServices.length).toBeGreaterThan(2);
    const authorized = { "content-type": "application/json", "x-api-key": key };
    const statuses = internalServices.flatMap(({ typeName, methods }) =>
      methods.map(async ({ name }) => {
        const request = { method: "POST", headers: authorized, body: "{}" };
        return (await fetch(`${url}/${typeName}/${name}`, request)).status;
      }),
    );
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([404]));
    const byGrpc = createClient(RunContextService, open({ "x-api-key": key })).getRunContext({
      sessionId: "s",
      agent: "a",
    });
    await expect(byGrpc).rejects.toMatchObject({ code: Code.Unimplemented });

    const client = createClient(ServerReflection, open());
    const ask = async (...messageRequests: ReflectionQuestion[]) => {
      const asked = async function* () {
        for (const messageRequest of messageRequests) yield { messageRequest };
      };
      return (await Array.fromAsync(client.serverReflectionInfo(asked()))).map((answer) => answer.messageResponse);
    };
    const [list] = await ask({ case: "listServices", value: "" });
    const listed = list?.case === "listServicesResponse" ? list.value.service.map(({ name }) => name) : [];
    expect(listed).toEqual(expect.arrayContaining(publicServices.map(({ typeName }) => typeName)));
    expect(listed.filter((name) => name.includes("internal"))).toEqual([]);
    const found = await ask(...listed.map((value) => ({ case: "fileContainingSymbol" as const, value })));
    const files = found.flatMap((answer) =>
      answer.case === "fileDescriptorResponse"
        ? answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
        : [],
    );
    expect(files.length).toBeGreaterThan(listed.length);
    const names = new Set(files.flatMap(({ name, dependency }) => [name, ...dependency]));
    expect([...names].filter((name) => name.includes("internal"))).toEqual([]);
    const hidden = await ask(
      ...internalServices.map(({ file }) => ({ case: "fileByFilename" as const, value: `${file.name}.proto` })),
      ...internalServices.map(({ typeName }) => ({ case: "fileContainingSymbol" as const, value: typeName })),
      { case: "fileContainingSymbol", value: StoredRunEventSchema.typeName },
    );
    expect(new Set(hidden.map((answer) => answer.case))).toEqual(new Set(["errorResponse"]));
    const health = createClient(Health, open());
    const service = RunContextService.typeName;
    await expect(health.check({ service })).rejects.toMatchObject({ code: Code.NotFound });
  });

  it("health tells which services somebody serves", async () => {
    const health = createClient(Health, open());
    expect((await health.check({ service: "" })).status).toBe(ServingStatus.SERVING);
    expect((await health.check({ service: AgentService.typeName })).status).toBe(ServingStatus.SERVING);
    const { statuses } = await health.list({});
    expect(statuses["toolbus.run.v1.RunService"]?.status).toBe(ServingStatus.NOT_SERVING);
    await expect(health.check({ service: "x.Y" })).rejects.toMatchObject({ code: Code.NotFound });
  });

  it("metrics count calls by service, method and code, for those who have a key", async () => {
    await agentsBy("gRPC over h2c").listAgents({});
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    const text = await (await fetch(`${url}/metrics`, { headers: { "x-api-key": key } })).text();
    expect(text).toMatch(/AgentService.*ListAgents|ListAgents.*AgentService/);
  });
});

describe("two keys in one request", () => {
  const ask = (headers: Record<string, string>) =>
    fetch(`${url}/toolbus.agent.v1.AgentService/ListAgents`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: "{}",
    });

  it.each([
    ["X-Api-Key", { authorization: `Bearer ${key}`, "x-api-key": "a-key-of-nobody-at-all" }],
    ["Authorization", { authorization: "Bearer a-key-of-nobody-at-all", "x-api-key": key }],
  ])("SEC-1 are refused when the one in %s is another", async (_, headers) => {
    const refused = await ask(headers);
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ message: expect.stringContaining("two keys that differ") });
  });

  it.each([
    [[`Bearer ${key}`, "Bearer a-key-of-nobody-at-all"], 401],
    [["Bearer a-key-of-nobody-at-all", `Bearer ${key}`], 401],
    [["Basic abc", `Bearer ${key}`], 401],
    [[`Bearer ${key}`, `Bearer ${key}`], 200],
  ])("SEC-1 both in Authorization: %j is answered with %i", async (authorization, status) => {
    const asked = request(`${url}/toolbus.agent.v1.AgentService/ListAgents`, {
      method: "POST",
      headers: [
        ...["Host", new URL(url).host, "Content-Type", "application/json"],
        ...authorization.flatMap((value) => ["Authorization", value]),
      ],
    });
    asked.end("{}");
    const [{ statusCode }] = (await once(asked, "response")) as [IncomingMessage];
    asked.destroy();
    expect(statusCode).toBe(status);
  });

  it("SEC-1 that are the same one let it in", async () => {
    expect((await ask({ authorization: `Bearer ${key}`, "x-api-key": key })).status).toBe(200);
  });
});

describe("requests in JSON", () => {
  it("BUS-3 a name that the contract does not have is refused, since a misspelt restriction would restrict nothing", async () => {
    const ask = (body: object) =>
      fetch(`${url}/toolbus.agent.v1.AgentService/ListAgents`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": key },
        body: JSON.stringify(body),
      });
    expect((await ask({ pageSize: 1 })).status).toBe(200);
    const refused = await ask({ pageSise: 1 });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("pageSise"),
    });
  });
});

describe("pages", () => {
  it("an allowed origin may call, another may not", async () => {
    const preflight = (origin: string) =>
      fetch(`${url}/toolbus.agent.v1.AgentService/ListAgents`, {
        method: "OPTIONS",
        headers: {
          ...{ origin, "access-control-request-method": "POST" },
          "access-control-request-headers": "authorization,idempotency-key,x-stainless-lang",
        },
      });
    const allowed = await preflight("https://page.example");
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://page.example");
    for (const name of ["authorization", "idempotency-key", "x-stainless-lang"]) // as OpenAI's client for JavaScript
      expect(allowed.headers.get("access-control-allow-headers")).toContain(name);
    const answer = await fetch(`${url}/v1/models`, { headers: { origin: "https://page.example" } });
    for (const name of ["mcp-session-id", "retry-after", "x-should-retry", "x-request-id"])
      expect(answer.headers.get("access-control-expose-headers")).toContain(name);
    const other = await preflight("https://other.example");
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
  });

  it("a path that is nothing says what there is", async () => {
    const response = await fetch(`${url}/nowhere`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ code: "not_found", message: expect.stringContaining("/nowhere") });
  });
});
