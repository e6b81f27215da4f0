// What a token proves, and to whom: services with keys of their own, one that is asked, and forgers.

import { decodeJwt, importJWK, SignJWT, UnsecuredJWT } from "jose";
import { describe, expect, it } from "vitest";
import { jwkOfLogin, publicKeyOf } from "#runtime/bus/credentials/login.ts";
import { createSeed } from "#runtime/bus/credentials/nkey/nkey.ts";
import { type SpeaksFor, trustListOf } from "#runtime/bus/credentials/trust/trust-list.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { Caller } from "../../identity.ts";
import { createIssuer } from "./issuer.ts";
import { createVerifier, type Verify } from "./verifier.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

const speakers = {
  gateway: "callers",
  orchestrator: "principals",
  spaces: "itself",
  admin: "everybody",
} as const satisfies Record<string, SpeaksFor>;
type Speaker = keyof typeof speakers;

const loginOf = (name: string) => ({ name, seed: createSeed() });
const logins = { gateway: loginOf("gateway"), orchestrator: loginOf("orchestrator"), spaces: loginOf("spaces") };
const all = { ...logins, admin: loginOf("admin") };
const trusted = trustListOf(
  Object.entries(speakers).map(([name, speaksFor]) => ({
    ...{ name, speaksFor, publicKey: publicKeyOf(all[name as Speaker]) },
  })),
);

const verifierOf = (audience: string, now?: () => number) =>
  createVerifier({ audience, trust: async () => trusted, ...(now && { now }) });
const router = verifierOf("tool-router");

const tokenBy = (name: Speaker, caller: Partial<Caller>, audience = "tool-router") =>
  createIssuer(all[name]).tokenFor({ isOperator: false, ...caller }, audience);

async function refusalOf(verify: Verify, token: string | Promise<string>): Promise<string> {
  const text = await token;
  const failure = await (async () => verify(text))().catch((error: unknown) => error);
  if (!(failure instanceof Failure)) throw new Error(`the token holds: ${JSON.stringify(failure)}`);
  expect(failure).toMatchObject({ code: "unauthenticated", reason: "CREDENTIALS_INVALID" });
  return failure.message;
}

describe("SEC-1 a token on the bus says who asks", () => {
  it.each<[Speaker, Partial<Caller>]>([
    ["gateway", { principal: "alice" }],
    ["gateway", { principal: "jörg : müller", isOperator: true }],
    ["orchestrator", { service: "orchestrator" }],
    ["orchestrator", { service: "orchestrator", principal: "alice" }],
    ["spaces", { service: "spaces" }],
    ["admin", { service: "test", principal: "alice", isOperator: true }],
  ])("by %s: %j", async (name, caller) => {
    const token = await tokenBy(name, caller);
    expect(await router(token)).toEqual({ isOperator: false, ...caller });
    expect(decodeJwt(token)).toMatchObject({ iss: publicKeyOf(all[name]), aud: "tool-router" });
  });

  it.each<[Speaker, Partial<Caller>, string]>([
    ["gateway", { service: "gateway" }, "does not ask for itself"],
    ["gateway", { service: "gateway", principal: "alice" }, "does not ask for itself"],
    ["orchestrator", { principal: "alice" }, "lets nobody in"],
    ["orchestrator", { service: "spaces" }, "cannot speak for another service"],
    ["orchestrator", { service: "orchestrator", principal: "alice", isOperator: true }, "gives no roles"],
    ["spaces", { service: "spaces", principal: "alice" }, "cannot speak for principals"],
    ["spaces", { principal: "alice", isOperator: true }, "lets nobody in"],
  ])("and is refused for whom %s may not speak: %j", async (name, caller, fault) => {
    expect(await refusalOf(router, tokenBy(name, caller))).toContain(fault);
  });

  it("a service passes principals on to its own instances, whatever else it may not", async () => {
    const caller = { service: "spaces", principal: "alice" };
    const audience = "spaces.instance-2";
    expect(await verifierOf(audience)(await tokenBy("spaces", caller, audience))).toMatchObject(caller);
  });
});

describe("SEC-1 a token is refused", () => {
  it("at another service than the one for which it was signed", async () => {
    const token = tokenBy("orchestrator", { service: "orchestrator", principal: "alice" }, "provider-of-somebody");
    expect(await refusalOf(router, token)).toContain("is for another than tool-router");
    const near = tokenBy("orchestrator", { service: "orchestrator" }, "tool-router.evil");
    expect(await refusalOf(router, near)).toContain("is for another than tool-router");
  });

  it("if nobody knows the key, whatever name it gives", async () => {
    const stranger = createIssuer(loginOf("gateway"));
    const token = stranger.tokenFor({ principal: "alice", isOperator: true }, "tool-router");
    expect(await refusalOf(router, token)).toContain("a key that is not trusted here");
  });

  it("if its issuer has not signed it", async () => {
    const claims = { iss: publicKeyOf(all.gateway), aud: "tool-router", sub: "alice", exp: Date.now() / SECOND + 60 };
    const forged = new SignJWT(claims).setProtectedHeader({ alg: "EdDSA" });
    const token = await forged.sign(await importJWK(jwkOfLogin(all.spaces)));
    expect(await refusalOf(router, token)).toContain("signature verification failed");
    expect(await refusalOf(router, new UnsecuredJWT(claims).encode())).toContain("does not hold");
    const [head, body = "", signature] = (await tokenBy("gateway", { principal: "alice" })).split(".");
    const changed = { ...JSON.parse(Buffer.from(body, "base64url").toString()), sub: "mallory" };
    const swapped = [head, Buffer.from(JSON.stringify(changed)).toString("base64url"), signature].join(".");
    expect(await refusalOf(router, swapped)).toContain("signature verification failed");
  });

  it("if it has no end, or is no token", async () => {
    const endless = new SignJWT({ iss: publicKeyOf(all.admin), aud: "tool-router", sub: "alice" });
    const token = await endless.setProtectedHeader({ alg: "EdDSA" }).sign(await importJWK(jwkOfLogin(all.admin)));
    expect(await refusalOf(router, token)).toContain('missing required "exp" claim');
    for (const text of ["", "alice", "a.b.c"]) expect(await refusalOf(router, text)).toContain("cannot be read");
  });

  it("when it has expired, also if it held before; clocks may be ten seconds apart", async () => {
    let now = Date.now();
    const token = await createIssuer(all.gateway, () => now).tokenFor(
      { principal: "alice", isOperator: false },
      "tool-router",
    );
    const verify = verifierOf("tool-router", () => now);
    for (const apart of [0, -10 * SECOND, 5 * MINUTE + 10 * SECOND]) {
      const atOthers = verifierOf("tool-router", () => now + apart);
      expect(await atOthers(token)).toMatchObject({ principal: "alice" });
    }
    expect(await verify(token)).toMatchObject({ principal: "alice" });
    now += 5 * MINUTE + 31 * SECOND;
    expect(await refusalOf(verify, token)).toContain("has expired");
  });
});

describe("the price of a token", () => {
  it("is paid once: it is signed once for a principal and a service, and verified once", async () => {
    const issuer = createIssuer(all.gateway);
    const alice = { principal: "alice", isOperator: false };
    const signed = await Promise.all([issuer.tokenFor(alice, "spaces"), issuer.tokenFor({ ...alice }, "spaces")]);
    expect(new Set(signed).size).toBe(1);
    expect(issuer.tokenFor(alice, "spaces"), "at once").toBe(signed[0]);
    const others = [{ ...alice, isOperator: true }, { ...alice, principal: "bob" }, { isOperator: false }];
    const texts = await Promise.all(others.map((caller) => issuer.tokenFor(caller, "spaces")));
    expect(new Set([...texts, ...signed]).size).toBe(4);

    let lists = 0;
    const trust = async () => {
      lists += 1;
      return trusted;
    };
    const verify = createVerifier({ audience: "spaces", trust });
    expect(await verify(signed[0]!)).toEqual(alice);
    expect(verify(signed[0]!), "at once").toEqual(alice);
    expect(lists).toBe(1);
  });

  it("a token is issued anew at half of its life", async () => {
    let now = Date.now();
    const issuer = createIssuer(all.gateway, () => now);
    const ask = () => issuer.tokenFor({ principal: "alice", isOperator: false }, "spaces");
    const first = await ask();
    now += 2 * MINUTE;
    expect(await ask()).toBe(first);
    now += MINUTE;
    const second = await ask();
    expect(decodeJwt(second).exp! - decodeJwt(first).exp!).toBe(180);
  });
});
