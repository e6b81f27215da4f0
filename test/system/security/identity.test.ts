// Who asks on the bus: what somebody reaches who holds a service's key, or a provider that was asked, or who signs nothing. All
// write their requests by hand, over a connection that nats-server lets do everything, so that the services alone refuse them.

import { rm } from "node:fs/promises";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { importJWK, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ProviderService } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { pathOfSeed, readLogin, writeCredentials } from "#runtime/bus/credentials/directory.ts";
import { type BusLogin, jwkOfLogin, publicKeyOf } from "#runtime/bus/credentials/login.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { createNatsTransport } from "#runtime/rpc/nats/client/transport.ts";
import { until } from "#runtime/time/until.ts";
import { issueProviderKey } from "../../../cli/suite/keys/provider-key.ts";
import { busUsers } from "../../../services/bus-users.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
const sessionId = "alices";
let suite: TestSuite;
let bus: Bus;

beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env: { TOOLBUS_DEFAULT_GRANT: "*" } }));
  bus = await suite.openBus();
  await issueProviderKey(suite.credentials, "stranger");
  await asked(SessionService, { "toolbus-identity": await signed("gateway", { sub: "alice" }) }).createSession({
    ...{ agent: "demo", sessionId },
  });
}, 120_000);
afterAll(() => stack.disposeAsync());

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;

/** A token as somebody writes it who has the key of that name. */
async function signed(name: string, claims: JWTPayload): Promise<string> {
  return signedBy(await readLogin(suite.credentials, name), claims);
}

async function signedBy(login: BusLogin, claims: JWTPayload): Promise<string> {
  const all = { iss: publicKeyOf(login), aud: "tool-router", exp: inSeconds(60), ...claims };
  return new SignJWT(all).setProtectedHeader({ alg: "EdDSA" }).sign(await importJWK(jwkOfLogin(login)));
}

/** A client that sends these headers, and nothing else that says who asks. */
function asked<S extends DescService>(service: S, headers: Record<string, string>, process = "tool-router"): Client<S> {
  const transport = createNatsTransport(bus, {
    service: process,
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
        return next(request);
      },
    ],
  });
  return createClient(service, transport);
}

/** What alice's session says to whoever sends these headers. */
async function sessionFor(headers: Record<string, string>): Promise<string> {
  try {
    const { session } = await asked(SessionService, headers).getSession({ sessionId });
    return `${session?.principal}'s session`;
  } catch (error) {
    const { reason, message } = failureFromConnectError(error);
    return `${reason}: ${message}`;
  }
}

const withToken = async (name: string, claims: JWTPayload) =>
  sessionFor({ "toolbus-identity": await signed(name, claims) });

/** A harmless question to each service. */
const questions: Record<string, (headers: Record<string, string>) => Promise<unknown>> = {
  "tool-router": (headers) => asked(AgentService, headers).listAgents({}),
  orchestrator: (headers) => asked(RunService, headers, "orchestrator").listRuns({}),
  "mcp-bridge": (headers) => asked(McpServerService, headers, "mcp-bridge").listMcpServers({}),
  "caller-relay": (headers) => asked(CallerService, headers, "caller-relay").getDeclaration({ sessionId }),
  "worker-pool": (headers) => asked(WorkerService, headers, "worker-pool").listWorkers({}),
  spaces: (headers) => asked(InboxDeliveryService, headers, "spaces").deliverEvent({}),
};

const reasonOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "an answer",
    (error: unknown) => failureFromConnectError(error).reason,
  );

describe("SEC-1 a request without a token", () => {
  it.each(Object.keys(questions))("reaches nothing at %s, whatever its headers claim", async (process) => {
    const claims = { "toolbus-principal": "alice", "toolbus-roles": "operator", "toolbus-service": "tool-router" };
    for (const headers of [{}, claims])
      expect(await reasonOf(questions[process]?.(headers) ?? Promise.reject())).toBe("CREDENTIALS_INVALID");
  });

  it("is answered by a service that knows its sender's token", async () => {
    for (const [process, ask] of Object.entries(questions)) {
      const token = await signed("admin", { svc: "test", aud: process });
      expect(await reasonOf(ask({ "toolbus-identity": token })), process).not.toBe("CREDENTIALS_INVALID");
    }
  });
});

describe("SEC-1 who has taken over a service", () => {
  it("asks for the principals for whom that service works, and for itself", async () => {
    expect(await withToken("gateway", { sub: "alice" })).toBe("alice's session");
    expect(await withToken("gateway", { sub: "mallory" })).toMatch(/^PRINCIPAL_NOT_OWNER/);
    expect(await withToken("orchestrator", { sub: "alice", svc: "orchestrator" })).toBe("alice's session");
    expect(await withToken("spaces", { svc: "spaces" })).toBe("alice's session");
  });

  it.each([
    ["spaces", { sub: "alice", svc: "spaces" }],
    ["mcp-bridge", { sub: "alice", svc: "mcp-bridge" }],
    ["caller-relay", { sub: "alice" }],
    ["orchestrator", { sub: "alice" }],
    ["worker-pool", { sub: "alice", svc: "worker-pool", roles: ["operator"] }],
    ["mcp-bridge", { svc: "tool-router" }],
    ["gateway", { svc: "gateway" }],
  ])("by the key of %s cannot be %j", async (name, claims) => {
    expect(await withToken(name, claims)).toMatch(
      new RegExp(`^CREDENTIALS_INVALID: the identity token .* is signed by ${name}, which `),
    );
  });

  it("cannot sign as another service by giving its public key", async () => {
    const iss = publicKeyOf(await readLogin(suite.credentials, "gateway"));
    expect(await withToken("spaces", { iss, sub: "alice" })).toMatch(/^CREDENTIALS_INVALID.*signature/);
  });
});

describe("SEC-1 a provider of a third party", () => {
  it("cannot use at a service what the router sent it, nor sign for anybody", async () => {
    const given = Promise.withResolvers<Record<string, string>>();
    const subject = `toolbus.rpc.stranger.${ToolProviderService.typeName}.*`;
    bus.connection.subscribe(subject, {
      callback: (_, { headers }) => {
        const metadata = [...(headers ?? [])].map(([key, [value = ""]]) => [key, value] as const);
        given.resolve(Object.fromEntries(metadata.filter(([key]) => /^[a-z]/.test(key))));
      },
    });
    await bus.connection.flush();
    const byOperator = { "toolbus-identity": await signed("admin", { sub: "olga", roles: ["operator"] }) };
    const address = { case: "service" as const, value: "stranger" };
    await asked(ProviderService, byOperator).applyProvider({ provider: { name: "stranger", address } });
    const sources = [{ name: "theirs", provider: "stranger" }];
    const agent = { name: "curious", sources, tools: { use: ["@theirs/*"] } };
    await asked(AgentService, byOperator).applyAgent({ agent });
    await asked(SessionService, byOperator).createSession({ agent: agent.name, sessionId: agent.name });
    const scope = { case: "session" as const, value: { sessionId: agent.name } };
    void reasonOf(asked(ToolService, byOperator).listTools({ scope }));
    const headers = await given.promise;
    for (const [process, ask] of Object.entries(questions))
      expect(await reasonOf(ask(headers)), process).toBe("CREDENTIALS_INVALID");
    expect(await sessionFor(headers)).toContain("the identity token of the request of tool-router is for another");
    expect(await withToken("provider.stranger", { sub: "alice" })).toContain("a key that is not trusted");
  });
});

describe("SEC-1 a token", () => {
  const alice = { sub: "alice", svc: "orchestrator" };

  it("that has expired is refused, with the clocks in mind", async () => {
    const refusal = /^CREDENTIALS_INVALID: .* of orchestrator has expired: the clocks of machines may be 30 s apart/;
    expect(await withToken("orchestrator", { ...alice, exp: inSeconds(-60) })).toMatch(refusal);
    expect(await withToken("orchestrator", { ...alice, exp: inSeconds(-10) })).toBe("alice's session");
  });

  it("of a key that was changed is refused within seconds, without a restart", async () => {
    const stolen = await readLogin(suite.credentials, "spaces");
    const byStolen = async () => sessionFor({ "toolbus-identity": await signedBy(stolen, { svc: "spaces" }) });
    expect(await byStolen()).toBe("alice's session");
    await rm(pathOfSeed(suite.credentials, "spaces"));
    await writeCredentials(suite.credentials, busUsers);
    await until(async () => (await byStolen()).includes("a key that is not trusted"), { timeoutMs: 20_000 });
  }, 30_000);
});
