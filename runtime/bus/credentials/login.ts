import { nkeys } from "@nats-io/nats-core";
import type { JWK } from "jose";
import { LocalFailure } from "../../failure/local-failure.ts";

/** Who signs in to NATS: a name, and the seed of the nkey that proves it. */
export interface BusLogin {
  /** A service's name, `admin`, or `provider.<name>` for a third party. */
  readonly name: string;
  /** A secret. */
  readonly seed: string;
}

/** May do everything on the bus: for the people who run it, and for the tests. */
export const ADMIN = "admin";

/** A fresh key; everything else about it follows from its seed. */
export function createSeed(): string {
  return Buffer.from(nkeys.createUser().getSeed()).toString();
}

/** What the server knows a key by. Throws `invalid_argument` for a text that is no seed. */
export function publicKeyOf({ name, seed }: BusLogin): string {
  try {
    return nkeys.fromSeed(Buffer.from(seed)).getPublicKey();
  } catch (cause) {
    throw new LocalFailure("invalid_argument", `the key of ${name} is no seed of an nkey`, { kind: "bus_key", cause });
  }
}

/** Answers to a connection come below this, where nobody else may listen. */
export function inboxPrefixOf({ name }: Pick<BusLogin, "name">): string {
  return `_INBOX.${name}`;
}

/** The key as a JSON Web Key, private: signs what its public form checks. Throws as `publicKeyOf` does. */
export function jwkOfLogin(login: BusLogin): JWK {
  const publicKey = publicKeyOf(login); // which has checked the seed, too
  return { ...jwkOfPublicKey(publicKey), d: keyBytes(login.seed, SEED_PREFIX_BYTES).toString("base64url") };
}

/** Throws `invalid_argument` for a text that is no public nkey. */
export function jwkOfPublicKey(publicKey: string): JWK {
  try {
    nkeys.fromPublic(publicKey);
  } catch (cause) {
    throw new LocalFailure("invalid_argument", `${JSON.stringify(publicKey)} is no public nkey`, {
      kind: "bus_key",
      cause,
    });
  }
  return {
    kty: "OKP",
    crv: "Ed25519",
    alg: "EdDSA",
    x: keyBytes(publicKey, PUBLIC_PREFIX_BYTES).toString("base64url"),
  };
}

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const SEED_PREFIX_BYTES = 2;
const PUBLIC_PREFIX_BYTES = 1;
const KEY_BYTES = 32;

/** An nkey is base32 of a prefix, the key and a checksum; the library keeps how it reads that to itself. */
function keyBytes(text: string, prefixBytes: number): Buffer {
  const bits = Array.from(text, (letter) => BASE32.indexOf(letter).toString(2).padStart(5, "0")).join("");
  const bytes = bits.match(/.{8}/g)?.map((octet) => Number.parseInt(octet, 2)) ?? [];
  return Buffer.from(bytes.slice(prefixBytes, prefixBytes + KEY_BYTES));
}
