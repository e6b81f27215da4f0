// Keys of one call: what they let in, and what forgers get.

import { decodeJwt, importJWK, SignJWT, UnsecuredJWT } from "jose";
import { describe, expect, it } from "vitest";
import { Health as HealthService } from "#gen/health/v1/health_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { jwkOfLogin, publicKeyOf } from "#runtime/bus/credentials/login.ts";
import { createSeed } from "#runtime/bus/credentials/nkey/nkey.ts";
import { trustListOf } from "#runtime/bus/credentials/trust/trust-list.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { requireAccess, takesCallKey } from "../rules.ts";
import { type CallKeyFacts, createCallKeyReader, createCallKeySigner, isCallKey } from "./call-keys.ts";
import { createIssuer } from "./issuer.ts";
import { createVerifier } from "./verifier.ts";

const MINUTE = 60_000;
const loginOf = (name: string) => ({ name, seed: createSeed() });
const [router, spaces, forger] = [loginOf("tool-router"), loginOf("spaces"), loginOf("tool-router")];
const trusted = trustListOf([
  { name: "tool-router", speaksFor: "principals", publicKey: publicKeyOf(router) },
  { name: "spaces", speaksFor: "itself", publicKey: publicKeyOf(spaces) },
]);
const trust = async () => trusted;
const read = createCallKeyReader({ trust, isKnown: (principal) => principal === "alice" });
const facts = (other: Partial<CallKeyFacts> = {}) => ({
  ...{ principal: "alice", callId: "c1", id: "k1", expireMs: Date.now() + MINUTE },
  ...other,
});
const keyBy = (login: typeof router, other?: Partial<CallKeyFacts>) => createCallKeySigner(login)(facts(other));
const caller = { principal: "alice", isOperator: false, callKey: { callId: "c1", id: "k1" } };

async function refusalOf(key: string): Promise<string> {
  const failure = await read(key).catch((error: unknown) => error);
  if (!(failure instanceof Failure)) throw new Error(`the key holds: ${JSON.stringify(failure)}`);
  expect(failure).toMatchObject({ code: "unauthenticated", reason: "CREDENTIALS_INVALID" });
  expect(failure.message, "says nothing of the key").not.toContain(key.slice(5, 40) || key);
  return failure.message;
}

/** What a key holds, changed. */
function changed(key: string, change: object): string {
  const [prefix, head, payload = "", seal] = key.split(".");
  const claims = { ...JSON.parse(Buffer.from(payload, "base64url").toString()), ...change };
  return [prefix, head, Buffer.from(JSON.stringify(claims)).toString("base64url"), seal].join(".");
}

describe("SEC-1 a key of one call", () => {
  it("says on whose behalf it comes, for which call, and what it is called", async () => {
    const key = await keyBy(router);
    expect(isCallKey(key)).toBe(true);
    expect(await read(key)).toEqual(caller);
  });

  it("is worth nothing after its end", async () => {
    let now = Date.now();
    const readLater = createCallKeyReader({ trust, isKnown: () => true, now: () => now });
    const key = await keyBy(router);
    expect(await readLater(key)).toEqual(caller);
    now += 2 * MINUTE;
    await expect(readLater(key)).rejects.toThrow("has expired");
    expect(await refusalOf(await keyBy(router, { expireMs: Date.now() - 2 * MINUTE }))).toContain("has expired");
  });

  it("ends soon after whoever signed it is trusted no more", async () => {
    let now = Date.now();
    let list = trusted;
    const readNow = createCallKeyReader({ trust: async () => list, isKnown: () => true, now: () => now });
    const key = await keyBy(router, { expireMs: now + 60 * MINUTE });
    expect(await readNow(key)).toEqual(caller);
    list = trustListOf([]);
    now += 2 * MINUTE;
    await expect(readNow(key)).rejects.toThrow("not trusted");
  });

  it("ends with the key of its principal", async () => {
    expect(await refusalOf(await keyBy(router, { principal: "bob" }))).toContain("no key here any more");
  });

  it.each<[string, () => Promise<string>, string]>([
    ["is for another call by a change", async () => changed(await keyBy(router), { call: "c2" }), "does not hold"],
    ["is longer by a change", async () => changed(await keyBy(router), { exp: 9_999_999_999 }), "does not hold"],
    ["is another's by a change", async () => changed(await keyBy(router), { sub: "alice " }), "does not hold"],
    ["is cut off", async () => (await keyBy(router)).slice(0, -4), "does not hold"],
    ["is signed by nobody", async () => `call.${new UnsecuredJWT(claims()).encode()}`, "does not hold"],
    ["is signed by who is not trusted", () => keyBy(forger), "not trusted"],
    ["is signed by who speaks for itself", () => keyBy(spaces), "cannot speak for principals"],
    ["names no call", () => signed({ sub: "alice", jti: "k1" }), "names no principal or no call"],
    ["names no principal", () => signed({ call: "c1", jti: "k1" }), "names no principal or no call"],
    ["has no end", () => signed({ sub: "alice", call: "c1", jti: "k1", exp: undefined }), "does not hold"],
    ["is an identity", async () => `call.${await identity()}`, "is for another than"],
    ["is words", async () => "call.me.when.ready", "cannot be read"],
    ["is nothing", async () => "call.", "cannot be read"],
  ])("that %s is refused", async (_what, key, fault) => {
    expect(await refusalOf(await key())).toContain(fault);
  });

  it("is no identity on the bus (call-key-5)", async () => {
    const verify = createVerifier({ audience: "tool-router", trust });
    const token = (await keyBy(router)).slice("call.".length);
    await expect((async () => verify(token))()).rejects.toThrow("is for another than tool-router");
  });

  it("stays bound on the way to a service, and is mixed up with no other identity of its principal", async () => {
    const gateway = loginOf("gateway");
    const verify = createVerifier({
      audience: "tool-router",
      trust: async () => trustListOf([{ name: "gateway", speaksFor: "callers", publicKey: publicKeyOf(gateway) }]),
    });
    const issuer = createIssuer(gateway);
    const whole = { principal: "alice", isOperator: false };
    const other = { ...caller, callKey: { callId: "c2", id: "k2" } };
    for (const one of [whole, caller, other, whole, caller])
      expect(await verify(await issuer.tokenFor(one, "tool-router"))).toEqual(one);
  });
});

describe("SEC-2 what a key of one call may", () => {
  const methods = ToolCallService.method;

  it("is what methods declare: to read its call, and to answer it", () => {
    const declared = Object.values(methods).filter(takesCallKey);
    expect(declared.map(({ name }) => name).sort()).toEqual(["GetToolCall", "SubmitToolResult"]);
    for (const { input } of declared) expect(input.field.callId?.name, "names its call").toBe("call_id");
  });

  it.each([methods.listToolCalls, methods.createCallKey, methods.watchToolCalls, RunService.method.getRun])(
    "is not $name, whatever its rule",
    (method) => {
      expect(() => requireAccess(method, caller)).toThrow("is not for a key of one call: it reads and answers call c1");
    },
  );

  it("is not what is open to everybody", () => {
    expect(() => requireAccess(HealthService.method.check, caller)).toThrow("is not for a key of one call");
  });
});

const claims = () => ({ iss: publicKeyOf(router), aud: "call keys", sub: "alice", call: "c1", jti: "k1" });

async function signed(given: Record<string, unknown>): Promise<string> {
  const all = { iss: publicKeyOf(router), aud: "call keys", exp: Math.floor(Date.now() / 1_000) + 60, ...given };
  const token = await new SignJWT(all).setProtectedHeader({ alg: "EdDSA" }).sign(await importJWK(jwkOfLogin(router)));
  expect(decodeJwt(token).iss).toBe(all.iss);
  return `call.${token}`;
}

async function identity(): Promise<string> {
  return createIssuer(router).tokenFor({ principal: "alice", service: "tool-router", isOperator: false }, "gateway");
}
