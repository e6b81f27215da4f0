// Tokens of an issuer that is somebody else: a server of keys that rotates, and what is wrong with a token is said without it.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { TokenSettings } from "#runtime/config/access/token-settings.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import { createTokenReader } from "./tokens.ts";

type Signing = Awaited<ReturnType<typeof newKey>>;

const issuer = "https://login.example/";
const server = createServer((_request, response) => {
  fetched += 1;
  const { status, body } = answered ?? { status: 200, body: JSON.stringify({ keys: published.map(({ jwk }) => jwk) }) };
  response.writeHead(status, { "content-type": "application/json" });
  response.end(body);
});
let fetched = 0;
/** In place of the keys. */
let answered: { status: number; body: string } | undefined;
let published: Signing[] = [];
let settings: TokenSettings;
let first: Signing;
const faults: string[] = [];
const readerOf = (of: TokenSettings = settings, refetchMs?: number) =>
  createTokenReader(of, (fault) => faults.push(fault), refetchMs);

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  settings = {
    issuer,
    audiences: ["toolbus", "toolbus-beta"],
    jwksUrl: new URL(`http://127.0.0.1:${port}/keys`),
    algorithms: ["ES256", "EdDSA"],
    clockToleranceMs: 5_000,
    principalClaim: "sub",
    rolesClaim: "realm_access.roles",
    operatorRole: "operator",
  };
});
beforeEach(async () => {
  first = await newKey("first");
  [published, fetched, answered] = [[first], 0, undefined];
});
afterAll(() => server.close());

async function newKey(kid: string, alg = "ES256") {
  const { privateKey, publicKey } = await generateKeyPair(alg);
  return { privateKey, kid, alg, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

const now = () => Math.floor(Date.now() / 1_000);

function token(
  { privateKey, kid, alg }: Omit<Signing, "jwk" | "kid"> & { kid?: string | undefined },
  claims: Record<string, unknown> = {},
) {
  const all = { iss: issuer, aud: "toolbus", sub: "alice", exp: now() + 60, ...claims };
  return new SignJWT(all).setProtectedHeader({ alg, ...(kid && { kid }) }).sign(privateKey);
}

async function refusalOf(reading: Promise<unknown>): Promise<Failure> {
  const failure = await reading.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(failure instanceof Failure)) throw new Error(`not refused: ${failure}`);
  return failure;
}

describe("SEC-1 a token", () => {
  it.each<[string, JWTPayload, string, boolean]>([
    ["names a principal", {}, "alice", false],
    ["is for one of several", { aud: ["other", "toolbus-beta"] }, "alice", false],
    ["may be as late as clocks are apart", { exp: now() - 2 }, "alice", false],
    ["makes an operator by its roles", { realm_access: { roles: ["a", "operator"] } }, "alice", true],
    ["may list its roles in one text", { "realm_access.roles": "a operator" }, "alice", true],
    ["may have roles as keys, as Zitadel's", { realm_access: { roles: { operator: { "1": "org" } } } }, "alice", true],
    ["makes none by a role that is said not to be", { realm_access: { roles: { operator: false } } }, "alice", false],
    ["makes none by roles elsewhere", { roles: ["operator"] }, "alice", false],
    ["makes none by a part of a name", { realm_access: { roles: "operators" } }, "alice", false],
  ])("%s", async (_, claims, principal, isOperator) => {
    const { caller } = await readerOf()(await token(first, claims));
    expect(caller).toEqual({ principal, isOperator });
  });

  it.each([
    ["resource_access.tool.bus.roles", { resource_access: { "tool.bus": { roles: ["operator"] } } }],
    ["https://toolbus.example/authz.roles", { "https://toolbus.example/authz": { roles: ["operator"] } }],
  ])("may list roles below names that have dots themselves: %s", async (rolesClaim, claims) => {
    const { caller } = await readerOf({ ...settings, rolesClaim })(await token(first, claims));
    expect(caller).toEqual({ principal: "alice", isOperator: true });
  });

  it("takes the principal from the claim that is configured", async () => {
    const read = readerOf({ ...settings, principalClaim: "email", rolesClaim: undefined });
    const claims = { email: "a@b.example", realm_access: { roles: ["operator"] } };
    expect((await read(await token(first, claims))).caller).toEqual({ principal: "a@b.example", isOperator: false });
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    ["has expired", { exp: now() - 60 }, /has expired/],
    ["is for somebody else", { aud: "payroll" }, /another audience than toolbus or toolbus-beta/],
    ["is of another issuer", { iss: "https://evil.example/" }, /another issuer than https:\/\/login\.example\//],
    ["is not valid yet", { nbf: now() + 60 }, /not valid yet/],
    ["never ends", { exp: undefined }, /lacks the claim exp/],
    ["names nobody", { sub: undefined }, /claim sub of the token names no principal/],
    ["names something else", { sub: 7 }, /claim sub of the token names no principal/],
    ["names somebody as spaces name agents", { sub: "session:alices:writer" }, /names no principal/],
    ["names somebody with control characters", { sub: "a\u0000" }, /names no principal/],
    ["names the owner of the machine", { sub: "local" }, /cannot stand for local/],
  ])("that %s is refused in words", async (_, claims, says) => {
    const text = await token(first, claims);
    const failure = await refusalOf(readerOf()(text));
    expect(failure).toMatchObject({ code: "unauthenticated", reason: "CREDENTIALS_INVALID" });
    expect(failure.message).toMatch(says);
    expect(failure.message).not.toMatch(/payroll|evil|eyJ/);
    expect(failure.message).not.toContain(text.slice(0, 10));
  });

  it("that somebody else has signed, or nobody, or whose content was changed, is refused in words", async () => {
    const read = readerOf();
    const stranger = await newKey("first");
    const good = await token(first);
    const [head, , signature] = good.split(".");
    const changed = Buffer.from(JSON.stringify({ iss: issuer, aud: "toolbus", sub: "bob", exp: now() + 60 }));
    const secret = new TextEncoder().encode(JSON.stringify(first.jwk));
    const bySecret = new SignJWT({ sub: "alice" }).setProtectedHeader({ alg: "HS256", kid: "first" }).sign(secret);
    const unsigned = new UnsecuredJWT({ sub: "alice" }).setIssuer(issuer).setAudience("toolbus").encode();
    const cases: [string | Promise<string>, RegExp][] = [
      [token(stranger), /signature of the token does not hold/],
      [`${head}.${changed.toString("base64url")}.${signature}`, /signature of the token does not hold/],
      [token(await newKey("unknown")), /a key that its issuer does not publish/],
      [bySecret, /another algorithm than ES256, EdDSA/],
      [`${unsigned}x`, /another algorithm than|cannot be read/],
      ["a.b.c", /cannot be read as one/],
    ];
    for (const [text, says] of cases) {
      const failure = await refusalOf(read(await text));
      expect(failure).toMatchObject({ code: "unauthenticated", reason: "CREDENTIALS_INVALID" });
      expect(failure.message).toMatch(says);
    }
  });
});

describe("SEC-1 the keys of the issuer", () => {
  it("may rotate: a new one is fetched when it is met, an old one holds no longer", async () => {
    const read = readerOf(settings, 0);
    await read(await token(first));
    await read(await token(first));
    expect(fetched).toBe(1);
    const second = await newKey("second", "EdDSA");
    published = [first, second];
    expect(await read(await token(second))).toMatchObject({ caller: { principal: "alice" } });
    expect(fetched).toBe(2);
    await read(await token(first));
    const third = await newKey("third");
    published = [third];
    await read(await token(third));
    expect((await refusalOf(read(await token(first)))).message).toMatch(/does not publish/);
  });

  it.each(["first", undefined])("may change behind the name that tokens give them: %s", async (kid) => {
    const read = readerOf(settings, 0);
    await read(await token({ ...first, kid }));
    const second = await newKey("first");
    published = [second];
    expect(await read(await token({ ...second, kid }))).toMatchObject({ caller: { principal: "alice" } });
    expect((await refusalOf(read(await token({ ...first, kid })))).message).toMatch(/signature/);
  });

  it("are not fetched for every token of a stranger", async () => {
    const read = readerOf();
    await read(await token(first));
    for (let n = 0; n < 20; n += 1) await refusalOf(read(await token(await newKey(`made-up-${n}`))));
    expect(fetched).toBe(1);
  });

  it("need not be named by a token: each that fits is tried", async () => {
    const second = await newKey("second");
    published = [first, second];
    const read = readerOf();
    for (const key of published)
      expect(await read(await token({ ...key, kid: undefined }))).toMatchObject({ caller: { principal: "alice" } });
    const stranger = { ...(await newKey("")), kid: undefined };
    expect((await refusalOf(read(await token(stranger)))).message).toBe("the signature of the token does not hold");
    const late = token({ ...second, kid: undefined }, { exp: now() - 60 });
    expect((await refusalOf(read(await late))).message).toMatch(/has expired/);
  });

  it.each<[string, number, string]>([
    ["is away", 503, ""],
    ["publishes no keys", 200, "{}"],
    ["publishes without end", 200, `{"keys":[],"more":"${"x".repeat(2 ** 20)}"}`],
  ])("hold for a day while it %s, which is told; one that is not among them may hold", async (_, status, body) => {
    vi.useFakeTimers({ toFake: ["Date", "performance"], now: Date.now() });
    try {
      const read = readerOf();
      await read(await token(first));
      answered = { status, body };
      const passed = async (hours: number) => {
        vi.advanceTimersByTime(hours * 3_600_000);
        return read(await token(first));
      };
      faults.length = 0;
      for (const hours of [1, 22]) expect(await passed(hours)).toMatchObject({ caller: { principal: "alice" } });
      expect(faults).toEqual([expect.stringMatching(/of 60 minutes ago hold/), expect.stringMatching(/of 1380 min/)]);
      const other = await refusalOf(read(await token(await newKey("second"))));
      expect(other).toMatchObject({ code: "unavailable", message: expect.stringContaining("cannot be read") });
      expect(await refusalOf(passed(2))).toMatchObject({ code: "unavailable" });
      expect(faults.at(-1)).toMatch(/and no token holds/);
    } finally {
      vi.useRealTimers();
    }
  });

  it.each<[string, string]>([
    ["cannot be had", ""],
    ["cannot be read", "<html>"],
  ])("that %s are not fetched for every token of a stranger either, who all are told why", async (_, body) => {
    const read = readerOf(settings, 30_000);
    answered = body === "" ? { status: 503, body } : { status: 200, body };
    const text = await token(first);
    const startedAt = performance.now();
    const { code, message } = await refusalOf(read(text));
    expect(code).toBe("unavailable");
    for (let n = 1; n < 20; n += 1) expect(await refusalOf(read(text))).toMatchObject({ code, message });
    expect(fetched).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1_000);
  });

  it("that cannot be had are a trouble of the gateway, and not of the token", async () => {
    answered = { status: 503, body: "" };
    const read = readerOf();
    const text = await token(first);
    expect(await refusalOf(read(text))).toMatchObject({ code: "unavailable", reason: "SERVICE_UNAVAILABLE" });
    answered = undefined;
    const holder = await until(() => read(text).catch(() => undefined), { what: "the keys to be asked for again" });
    expect(holder).toMatchObject({ caller: { principal: "alice" } });
  });
});
