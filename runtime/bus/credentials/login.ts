import { nkeys } from "@nats-io/nats-core";
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
