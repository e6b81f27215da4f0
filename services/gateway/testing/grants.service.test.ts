import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { OpenService } from "#runtime/lifecycle/run-service.ts";
import { DEFAULT_GRANT, grantBucket, keyOfPrincipal } from "#runtime/rpc/access/grantees.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";

const stack = new AsyncDisposableStack();
const signing = generateKeyPair("ES256");
let bus: TestBus;
let tokens: Record<string, string>;

beforeAll(async () => {
  bus = stack.use(await openTestBus());
  const jwk = { ...(await exportJWK((await signing).publicKey)), kid: "k", alg: "ES256" };
  const issuer = createServer((_request, response) => response.end(JSON.stringify({ keys: [jwk] })));
  stack.defer(() => void issuer.close());
  issuer.listen(0, "127.0.0.1");
  await once(issuer, "listening");
  tokens = {
    TOOLBUS_JWT_ISSUER: "https://login.example/",
    TOOLBUS_JWT_AUDIENCE: "toolbus",
    TOOLBUS_JWT_JWKS_URL: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/`,
  };
});
afterAll(() => stack.disposeAsync());

async function openGateway(env: Record<string, string>, logger = pino({ level: "silent" })) {
  const { url, credentials } = bus.server;
  const config = readConfig({ NATS_URL: url, TOOLBUS_BUS_CREDENTIALS: credentials, TOOLBUS_HTTP_PORT: "0", ...env });
  const telemetry = await openTelemetry({ service: "gateway" });
  const context = { name: "gateway", instance: "g", logger, telemetry, signal: new AbortController().signal };
  return openService(config, context);
}

const recordOf = async (key: string) => (await createBucket(bus, grantBucket).read(key))?.value;
const [one, two] = ["alice:a-key-of-some-length", "bob:another-key-of-some-length"];

test("SEC-2 what has no grants is for whom an operator names, for the one who alone has a key, and for operators", async () => {
  const cases: [Record<string, string>, string[]][] = [
    [{ TOOLBUS_API_KEYS: one }, ["alice"]],
    [{ TOOLBUS_API_KEYS: `${one},alice:the-next-key-of-alice` }, ["alice"]],
    [{ TOOLBUS_API_KEYS: `${one},${two}` }, []],
    [{ TOOLBUS_API_KEYS: `${one},${two}`, TOOLBUS_OPERATORS: "bob" }, ["bob"]],
    [{ TOOLBUS_API_KEYS: `${one},${two}`, TOOLBUS_OPERATORS: "bob", TOOLBUS_DEFAULT_GRANT: "alice" }, ["alice", "bob"]],
    [{ TOOLBUS_API_KEYS: `${one},${two}`, TOOLBUS_DEFAULT_GRANT: "*" }, ["*"]],
    [{ TOOLBUS_API_KEYS: one, ...tokens }, []],
    [{ TOOLBUS_AUTH: "none" }, []],
  ];
  for (const [env, expected] of cases) {
    await using _gateway = await openGateway(env);
    expect(await recordOf(DEFAULT_GRANT), JSON.stringify(Object.keys(env))).toEqual(expected);
  }
});

test("SEC-2 a gateway that is configured otherwise than the one before says so", async () => {
  const lines: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
  const keys = { TOOLBUS_API_KEYS: `${one},${two}` };
  await using _before = await openGateway({ ...keys, TOOLBUS_DEFAULT_GRANT: "alice" });
  await using _same = await openGateway({ ...keys, TOOLBUS_DEFAULT_GRANT: "alice" }, logger);
  expect(lines).toEqual([]);
  await using _other = await openGateway(keys, logger);
  expect(lines.join()).toMatch(
    /was for alice, and is for nobody from now on: give all gateways the same .*DEFAULT_GRANT/,
  );
});

const askBy = async (gateway: OpenService, claims: Record<string, unknown>) => {
  const exp = Math.floor(Date.now() / 1_000) + 60;
  const token = await new SignJWT({ iss: "https://login.example/", aud: "toolbus", exp, sub: "dora@b", ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "k" })
    .sign((await signing).privateKey);
  const { status } = await fetch(`${gateway.announcement?.url}/metrics`, { headers: { "x-api-key": token } });
  expect(status).toBe(200);
  return recordOf(keyOfPrincipal(String(claims.sub ?? "dora@b")));
};

test("SEC-2 what a token grants is told before its request goes on, and taken back by one that grants less", async () => {
  const claims = { TOOLBUS_JWT_GRANTS_CLAIM: "toolbus.grants", TOOLBUS_JWT_ROLES_CLAIM: "roles" };
  await using gateway = await openGateway({ ...tokens, ...claims });
  const ask = (claims: Record<string, unknown>) => askBy(gateway, claims);
  expect(await ask({})).toBeUndefined();
  const grants = ["default", "space:hall", "read:mail", "agent:*", "agent:writer", "agent:writer", 7];
  expect(await ask({ toolbus: { grants } })).toEqual(["agent:writer", "default", "space:hall"]);
  expect(await ask({ toolbus: { grants: "tool:scales other" } })).toEqual(["tool:scales"]);
  expect(await ask({ grants })).toEqual([]);
  expect(await ask({ roles: ["operator"] }), "an operator by its role").toEqual(["default"]);
});

test("SEC-2 the latest token of a principal says what is granted to it, whichever gateways saw those before", async () => {
  const env = { ...tokens, TOOLBUS_JWT_GRANTS_CLAIM: "grants" };
  await using first = await openGateway(env);
  await using second = await openGateway(env);
  const [less, more] = [
    { sub: "erin", grants: ["agent:clerk"] },
    { sub: "erin", grants: ["agent:clerk", "tool:safe"] },
  ];
  expect(await askBy(first, less)).toEqual(["agent:clerk"]);
  expect(await askBy(second, more)).toEqual(["agent:clerk", "tool:safe"]);
  const takenBack = async () => (await askBy(first, less))?.length === 1;
  await until(takenBack, { what: "a gateway to take back what another has told", timeoutMs: 5_000 });
});
