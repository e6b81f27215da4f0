import { createHash, timingSafeEqual } from "node:crypto";
import { createContextKey, type Interceptor } from "@connectrpc/connect";
import { connectError } from "#runtime/failure/connect.ts";
import { type Caller, LOCAL_PRINCIPAL } from "#runtime/rpc/identity.ts";

/** A key and the principal that it stands for. */
export interface ApiKey {
  principal: string;
  key: string;
}

export const callerKey = createContextKey<Caller>({ isOperator: false }, { description: "who calls" });

export type Authenticate = (header: Headers) => Caller | undefined;

/**
 * Finds who makes a request by `Authorization: Bearer KEY` or `X-Api-Key: KEY`. Without keys everybody is
 * `local`, which is why a gateway without keys listens on the loopback interface only.
 */
export function createAuthenticate(keys: readonly ApiKey[], operators: ReadonlySet<string>): Authenticate {
  const callerFor = (principal: string): Caller => ({ principal, isOperator: operators.has(principal) });
  if (keys.length === 0) return () => callerFor(LOCAL_PRINCIPAL);
  const digests = keys.map(({ principal, key }) => ({ caller: callerFor(principal), digest: digestOf(key) }));
  return (header) => {
    const given = keyOf(header);
    if (given === undefined) return undefined;
    const digest = digestOf(given);
    // All are compared, in constant time, so that the time tells nothing of the keys.
    const matches = digests.filter((entry) => timingSafeEqual(entry.digest, digest));
    return matches[0]?.caller;
  };
}

/** Health and reflection stay open: probes and tools ask them before they have a key. */
const openServices = new Set([
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
]);

export function createAuthenticationInterceptor(authenticate: Authenticate): Interceptor {
  return (next) => (request) => {
    const caller = authenticate(request.header);
    if (caller === undefined && !openServices.has(request.service.typeName)) {
      const text = "this gateway wants a key: send it as `Authorization: Bearer KEY` or `X-Api-Key: KEY`";
      throw connectError("unauthenticated", text, { reason: "CREDENTIALS_INVALID" });
    }
    if (caller !== undefined) request.contextValues.set(callerKey, caller);
    return next(request);
  };
}

function keyOf(header: Headers): string | undefined {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(header.get("authorization") ?? "") ?? [];
  return bearer ?? header.get("x-api-key") ?? undefined;
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
