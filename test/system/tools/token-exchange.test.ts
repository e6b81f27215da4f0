// Tokens of persons at MCP servers, exchanged for those with which they come to the gateway (RFC 8693).

import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";
import { errors } from "oidc-provider";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openConnection } from "../../../cli/connection.ts";
import {
  type AuthorizationServer,
  openAuthorizationServer,
  TOKEN_EXCHANGE,
} from "../../../services/mcp-bridge/auth/testing/authorization-server.ts";
import {
  openProtectedServer,
  type ProtectedServer,
} from "../../../services/mcp-bridge/auth/testing/protected-server.ts";
import { until } from "../../harness/commands/commands-at.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
const issuer = "https://login.example/";
const secret = "a secret of at least 32 characters";
const operatorKey = "the-key-of-olga-herself";
const { privateKey, publicKey } = await generateKeyPair("ES256");
let authorizationServer: AuthorizationServer;
let server: ProtectedServer;
let suite: TestSuite;

const tokenOf = (subject: string, lifetime = "5m") =>
  new SignJWT({})
    .setProtectedHeader({ alg: "ES256", kid: "one" })
    .setIssuer(issuer)
    .setAudience("toolbus")
    .setSubject(subject)
    .setExpirationTime(lifetime)
    .sign(privateKey);

beforeAll(async () => {
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", kid: "one" }] });
  const published = createServer((_, response) => response.end(keys));
  await new Promise<void>((resolve) => published.listen(0, "127.0.0.1", resolve));
  stack.defer(() => void published.close());
  const jwksUrl = `http://127.0.0.1:${(published.address() as AddressInfo).port}/keys`;
  const known = createRemoteJWKSet(new URL(jwksUrl));
  const client = {
    ...{ client_id: "suite", client_secret: secret, redirect_uris: [], response_types: [] },
    grant_types: [TOKEN_EXCHANGE],
  };
  authorizationServer = stack.use(
    await openAuthorizationServer({
      configuration: { clients: [client as never] },
      async personOf(token) {
        const verified = await jwtVerify(token, known, { issuer }).catch(() => undefined);
        return verified?.payload.sub ?? Promise.reject(new errors.InvalidGrant("it is no token of ours"));
      },
    }),
  );
  server = stack.use(await openProtectedServer(authorizationServer));
  const env = {
    TOOLBUS_API_KEYS: `olga:${operatorKey}`,
    TOOLBUS_OPERATORS: "olga",
    TOOLBUS_DEFAULT_GRANT: "*",
    TOOLBUS_JWT_ISSUER: issuer,
    TOOLBUS_JWT_AUDIENCE: "toolbus",
    TOOLBUS_JWT_JWKS_URL: jwksUrl,
    TOOLBUS_SECRET_SUITE: secret,
  };
  const services = ["gateway", "tool-router", "mcp-bridge", "spaces"];
  suite = stack.use(await openTestSuite({ services, env }));
  const auth = {
    ...{ grant: "AUTH_GRANT_TOKEN_EXCHANGE", issuer: authorizationServer.issuer, scopes: ["read"] },
    ...{ clientId: "suite", clientSecret: "$" + "{secret:SUITE}" },
  };
  const sources = [{ name: "notes", provider: "mcp", config: { url: server.url, auth } }];
  const agent = { name: "reader", sources, tools: { use: ["@notes/*"] } };
  const apply = () => connectionOf(operatorKey).client(AgentService).applyAgent({ agent });
  await until(() => apply().catch(() => undefined), { what: "the router to be there" });
}, 120_000);
afterAll(() => stack.disposeAsync());

const connectionOf = (apiKey: string) => openConnection({ url: suite.url, apiKey });

async function echo(apiKey: string, sessionId: string, text: string): Promise<string | undefined> {
  const { client } = connectionOf(apiKey);
  await client(SessionService).createSession({ sessionId, agent: "reader" });
  const request = { sessionId, name: "@notes/echo", argumentsJson: JSON.stringify({ text }) };
  for await (const { event } of client(ToolService).callTool(request))
    if (event.case === "result") return event.value.outputJson;
  return undefined;
}

async function personsOf(): Promise<(string | undefined)[]> {
  const { AccessToken } = authorizationServer.provider;
  const tokens = new Set(server.authorizations.flatMap((text) => text?.slice("Bearer ".length) ?? []));
  return Promise.all([...tokens].map(async (token) => (await AccessToken.find(token))?.accountId));
}

it("each person who comes with a JWT has a token of its own at the server, at the first call", async () => {
  const [ada, eve] = await Promise.all([tokenOf("ada"), tokenOf("eve")]);
  expect(await echo(ada, "of-ada", "mine")).toBe('"mine"');
  expect(await echo(eve, "of-eve", "hers")).toBe('"hers"');
  expect((await personsOf()).toSorted()).toEqual(["ada", "eve"]);
  const exchanged = authorizationServer.tokenRequests.map((one) => one.get("subject_token"));
  expect(exchanged.toSorted()).toEqual([ada, eve].toSorted());
});

it("who comes by a key is refused in words, and is told what to do", async () => {
  const answer = await echo(operatorKey, "of-olga", "none");
  expect(answer).toMatch(/come to the gateway with a JWT \(no token of olga is here/);
});

it("who was too late comes again with a new token, in the same session", async () => {
  const short = await tokenOf("carl", "2s");
  expect(await echo(short, "of-carl", "first")).toBe('"first"');
  await until(() => Date.now() > exp(short) || undefined, { what: "its end" });
  for (const text of new Set(server.authorizations))
    await (await authorizationServer.provider.AccessToken.find(text?.slice("Bearer ".length) ?? ""))?.destroy();
  const late = await echo(short, "of-carl", "late").catch(({ message }: Error) => message);
  expect(late).toContain("the token of carl has ended: send a request with a new one, which can resume the run");
  expect(await echo(await tokenOf("carl"), "of-carl", "again")).toBe('"again"');
});

it("SEC-7 no token lies in a store, a log or the audit trail", async () => {
  const tokens = [
    ...authorizationServer.tokenRequests.flatMap((one) => one.get("subject_token") ?? []),
    ...server.authorizations.flatMap((text) => text?.slice("Bearer ".length) ?? []),
  ];
  expect(tokens.length).toBeGreaterThan(4);
  const { events } = await connectionOf(operatorKey).client(AuditService).listAuditEvents({});
  const told = [JSON.stringify(events, (_, value) => (typeof value === "bigint" ? String(value) : value))];
  for (const entry of await readdir(suite.directory, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) told.push(await readFile(join(entry.parentPath, entry.name), "latin1"));
  expect(told.length).toBeGreaterThan(20);
  expect(told.some((text) => text.includes("AUTH_GRANT_TOKEN_EXCHANGE"))).toBe(true);
  expect(tokens.filter((token) => told.some((text) => text.includes(token)))).toEqual([]);
});

function exp(token: string): number {
  const [, claims = ""] = token.split(".");
  return JSON.parse(Buffer.from(claims, "base64url").toString()).exp * 1_000;
}
