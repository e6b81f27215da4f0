import { createPublicKey, sign } from "node:crypto";
import { nkeys } from "@nats-io/nats-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { publicKeyOf, signNonce } from "../login.ts";
import { bytesFromPublicText, createSeed, privateKeyFromSeed, publicTextFromBytes } from "./nkey.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("SEC-1 keys of NATS, by Node's cryptography and by the client's library", () => {
  test("are the same, public and private, and sign alike", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.string(), (key, nonce) => {
        const text = publicTextFromBytes(key);
        expect(bytesFromPublicText(text)).toEqual(Buffer.from(key));
        const login = { name: "any", seed: createSeed() };
        const theirs = nkeys.fromSeed(bytesOf(login.seed));
        expect(publicKeyOf(login)).toBe(theirs.getPublicKey());
        expect(Buffer.from(signNonce(login, nonce), "base64url")).toEqual(Buffer.from(theirs.sign(bytesOf(nonce))));
      }),
      { numRuns: 10 },
    );
  });

  test("of the library are read, and what is made here the library reads", () => {
    const theirs = nkeys.createUser();
    const key = privateKeyFromSeed(Buffer.from(theirs.getSeed()).toString());
    expect(key).toBeDefined();
    if (key === undefined) return;
    const signature = sign(null, Buffer.from("nonce"), key);
    expect(theirs.verify(bytesOf("nonce"), signature)).toBe(true);
    const x = createPublicKey(key).export({ format: "jwk" }).x ?? "";
    expect(publicTextFromBytes(Buffer.from(x, "base64url"))).toBe(theirs.getPublicKey());
    expect(nkeys.fromSeed(bytesOf(createSeed())).getPublicKey()).toMatch(/^U/);
  });

  test("with a letter changed, cut, lengthened, or of another role are none", () => {
    const seed = createSeed();
    const other = (text: string, at: number) => text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
    const account = Buffer.from(nkeys.createAccount().getSeed()).toString();
    const wrong = [other(seed, 0), other(seed, 20), seed.slice(0, -1), `${seed}A`, seed.toLowerCase(), "", account];
    for (const text of wrong) expect(privateKeyFromSeed(text), text).toBeUndefined();
    expect(bytesFromPublicText(nkeys.createAccount().getPublicKey())).toBeUndefined();
    expect(bytesFromPublicText(seed)).toBeUndefined();
  });
});
