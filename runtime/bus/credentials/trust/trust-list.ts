// Whose word for whom counts on the bus, as a file beside the keys that every service reads. It holds public keys only, and is as
// good as the hands that it goes through: who can write it can speak for everybody.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { LocalFailure } from "../../../failure/local-failure.ts";

/**
 * For whom a key may sign:
 *
 * - `itself`: the service, and principals towards other instances of the service alone
 * - `principals`: the service, and the principals that it works for, without any role
 * - `callers`: whom it has authenticated, with their roles, and never itself
 * - `everybody`: all of that
 */
export type SpeaksFor = "itself" | "principals" | "callers" | "everybody";

export interface TrustedKey {
  /** A service, or `admin`. */
  readonly name: string;
  readonly publicKey: string;
  readonly speaksFor: SpeaksFor;
}

/** By public key. */
export type TrustList = ReadonlyMap<string, TrustedKey>;

export type ReadTrustList = () => Promise<TrustList>;

const trustFile = "trust.json";

/** How long a list counts before it is read again, so that a key that was changed or taken away needs no restart. */
const MAX_AGE_MS = 10_000;

export function trustListOf(keys: readonly TrustedKey[]): TrustList {
  return new Map(keys.map((key) => [key.publicKey, key]));
}

export function pathOfTrustList(directory: string): string {
  return join(directory, trustFile);
}

export function textOfTrustList(keys: readonly TrustedKey[]): string {
  return `${JSON.stringify({ keys }, undefined, 2)}\n`;
}

/** The list in a directory of credentials. Throws `failed_precondition`, with the way out, where there is none. */
export async function followTrustList(directory: string): Promise<ReadTrustList> {
  const path = pathOfTrustList(directory);
  let known = await read(path);
  let readAt = Date.now();
  return async () => {
    if (Math.abs(Date.now() - readAt) < MAX_AGE_MS) return known;
    readAt = Date.now();
    known = await read(path).catch(() => known); // while it is away, what it said last holds
    return known;
  };
}

async function read(path: string): Promise<TrustList> {
  try {
    const { keys } = JSON.parse(await readFile(path, "utf8")) as { keys: TrustedKey[] };
    return trustListOf(keys);
  } catch (cause) {
    const advice = "`toolbus up` and `toolbus bus credentials --out DIR` write it";
    throw new LocalFailure("failed_precondition", `the list of trusted keys, ${path}, cannot be read: ${advice}`, {
      kind: "bus_credentials_missing",
      cause,
    });
  }
}
