import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify } from "jose";
import type { TokenSettings } from "#runtime/config/access/token-settings.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { type Caller, LOCAL_PRINCIPAL } from "#runtime/rpc/identity.ts";
import { isObject } from "#runtime/schema/json-object.ts";

/** Whom a token stands for, and what it grants: nothing, where no claim is read. */
export interface TokenHolder {
  readonly caller: Caller;
  readonly grants: readonly string[];
  readonly expiresAtMs: number;
}

export type ReadToken = (token: string) => Promise<TokenHolder>;

const FETCH_TIMEOUT_MS = 5_000;
const MAX_PRINCIPAL_LENGTH = 256;

/** At most so often, tokens by a key that nobody knows make the gateway ask the issuer for its keys again. */
const REFETCH_MS = 30_000;
/** At most so often any token does, while they cannot be read. */
const RETRY_MS = 1_000;

/** Verifies tokens by the keys that their issuer publishes, which it may change. Throws `unauthenticated`, and says what is wrong. */
export function createTokenReader(settings: TokenSettings, refetchMs = REFETCH_MS): ReadToken {
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let lastFailure: unknown = new Error("so it was a moment ago");
  const keys = createRemoteJWKSet(settings.jwksUrl, {
    timeoutDuration: FETCH_TIMEOUT_MS,
    cooldownDuration: refetchMs,
    async [customFetch](url, options) {
      if (performance.now() < fetchedAt + Math.min(RETRY_MS, refetchMs)) throw lastFailure;
      fetchedAt = performance.now();
      return fetch(url, options);
    },
  });
  const expected = {
    issuer: settings.issuer,
    audience: [...settings.audiences],
    algorithms: [...settings.algorithms],
    clockTolerance: settings.clockToleranceMs / 1_000,
    requiredClaims: ["exp"],
  };
  return async (token) => {
    const { payload } = await jwtVerify(token, keys, expected).catch((error: unknown) => {
      const fault = faultOf(error, settings);
      if (fault !== undefined) return refuseInvalid(fault);
      lastFailure = error;
      const text = `the keys of the issuer cannot be read, so no token can be checked: ${messageFromUnknown(error)}`;
      return refuse("unavailable", text, { reason: "SERVICE_UNAVAILABLE", cause: error });
    });
    const expiresAtMs = (payload.exp ?? 0) * 1_000;
    return { caller: callerFrom(payload, settings), grants: grantsFrom(payload, settings), expiresAtMs };
  };
}

function callerFrom(claims: JWTPayload, { principalClaim, rolesClaim, operatorRole }: TokenSettings): Caller {
  const principal = claimAt(claims, principalClaim);
  if (typeof principal !== "string" || !isName(principal)) {
    return refuseInvalid(
      `the claim ${principalClaim} of the token names no principal: a text of at most 256 characters`,
    );
  }
  // Whoever is `local` is an operator; that is for the key of the machine itself.
  if (principal === LOCAL_PRINCIPAL) return refuseInvalid(`a token cannot stand for ${LOCAL_PRINCIPAL}`);
  return { principal, isOperator: listAt(claims, rolesClaim).includes(operatorRole) };
}

/** More than this are somebody else's. */
const MAX_GRANTS = 1_000;

/** The claim may list what means something to others. */
function grantsFrom(claims: JWTPayload, { grantsClaim }: TokenSettings): string[] {
  const isGrant = (name: unknown): name is string =>
    typeof name === "string" && /^(default|(agent|space|tool):[\w.-]{1,128})$/.test(name);
  return [...new Set(listAt(claims, grantsClaim).filter(isGrant))].sort().slice(0, MAX_GRANTS);
}

/** A list may be one text, with blanks between. */
function listAt(claims: JWTPayload, path: string | undefined): unknown[] {
  const listed = path === undefined ? undefined : claimAt(claims, path);
  const items = typeof listed === "string" ? listed.split(" ") : listed;
  return Array.isArray(items) ? items : [];
}

function isName(text: string): boolean {
  return text.length > 0 && text.length <= MAX_PRINCIPAL_LENGTH && text.isWellFormed() && !/\p{Cc}|\p{Cf}/u.test(text);
}

function claimAt(claims: JWTPayload, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  return path.split(".").reduce<unknown>((value, name) => {
    return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }, claims);
}

/** What is wrong with a token, without a word of it; undefined when the issuer's keys are the trouble. */
function faultOf(
  error: unknown,
  { issuer, audiences, algorithms, clockToleranceMs }: TokenSettings,
): string | undefined {
  if (error instanceof errors.JWTExpired) return "the token has expired: get a new one";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === "missing") return `the token lacks the claim ${error.claim}`;
    if (error.claim === "aud") return `the token is for another audience than ${audiences.join(" or ")}`;
    if (error.claim === "iss") return `the token is of another issuer than ${issuer}`;
    if (error.claim === "nbf") return `the token is not valid yet, by more than ${clockToleranceMs} ms`;
    return `the claim ${error.claim} of the token does not hold`;
  }
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return "the token is signed by a key that its issuer does not publish";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the signature of the token does not hold";
  if (error instanceof errors.JOSEAlgNotAllowed)
    return `the token is signed by another algorithm than ${algorithms.join(", ")}`;
  const isUnread = [errors.JWTInvalid, errors.JWSInvalid, errors.JOSENotSupported].some(
    (kind) => error instanceof kind,
  );
  return isUnread ? "what was sent as a token cannot be read as one" : undefined;
}

function refuseInvalid(text: string): never {
  return refuse("unauthenticated", text, { reason: "CREDENTIALS_INVALID" });
}
