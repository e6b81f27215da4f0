import { createPublicKey, type KeyObject, sign } from "node:crypto";
import type { JWK } from "jose";
import { LocalFailure } from "../../failure/local-failure.ts";
import { bytesFromPublicText, privateKeyFromSeed, publicTextFromBytes } from "./nkey/nkey.ts";

/** Who signs in to NATS: a name, and the seed of the nkey that proves it. */
export interface BusLogin {
  /** A service's name, `admin`, or `provider.<name>` for a third party. */
  readonly name: string;
  /** A secret. */
  readonly seed: string;
}

/** May do everything on the bus: for the people who run it, and for the tests. */
export const ADMIN = "admin";

/** What the server knows a key by. Throws `invalid_argument` for a text that is no seed. */
export function publicKeyOf(login: BusLogin): string {
  const { x = "" } = createPublicKey(keyOf(login)).export({ format: "jwk" });
  return publicTextFromBytes(Buffer.from(x, "base64url"));
}

/** The proof of a login to a server that asks for it by a nonce. Throws as `publicKeyOf` does. */
export function signNonce(login: BusLogin, nonce: string): string {
  return sign(null, Buffer.from(nonce), keyOf(login)).toString("base64url");
}

/** Answers to a connection come below this, where nobody else may listen. */
export function inboxPrefixOf({ name }: Pick<BusLogin, "name">): string {
  return `_INBOX.${name}`;
}

/** The key as a JSON Web Key, private: signs what its public form checks. Throws as `publicKeyOf` does. */
export function jwkOfLogin(login: BusLogin): JWK {
  return { ...(keyOf(login).export({ format: "jwk" }) as JWK), alg: "EdDSA" };
}

/** Throws `invalid_argument` for a text that is no public nkey. */
export function jwkOfPublicKey(publicKey: string): JWK {
  const bytes = bytesFromPublicText(publicKey);
  if (bytes === undefined)
    throw new LocalFailure("invalid_argument", `${JSON.stringify(publicKey)} is no public nkey`, { kind: "bus_key" });
  return { kty: "OKP", crv: "Ed25519", alg: "EdDSA", x: bytes.toString("base64url") };
}

function keyOf({ name, seed }: BusLogin): KeyObject {
  const key = privateKeyFromSeed(seed);
  if (key !== undefined) return key;
  throw new LocalFailure("invalid_argument", `the key of ${name} is no seed of an nkey`, { kind: "bus_key" });
}
