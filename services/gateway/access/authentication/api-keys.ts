import { createHash, timingSafeEqual } from "node:crypto";
import type { ApiKey } from "#runtime/config/access/gateway-credentials.ts";

/** Finds the principal of a key. All are compared, in constant time, so that the time tells nothing of them. */
export function createKeyring(keys: readonly ApiKey[]): (given: string) => string | undefined {
  const entries = keys.map(({ principal, key }) => ({ principal, digest: digestOf(key) }));
  return (given) => {
    const digest = digestOf(given);
    const matches = entries.filter((entry) => timingSafeEqual(entry.digest, digest));
    return matches[0]?.principal;
  };
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
