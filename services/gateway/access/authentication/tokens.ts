import { errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from "jose";
import type { TokenSettings } from "#runtime/config/access/token-settings.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { DEFAULT_GRANT } from "#runtime/rpc/access/grantees.ts";
import { type Caller, LOCAL_PRINCIPAL } from "#runtime/rpc/identity.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { createIssuerKeys, type IssuerKeys } from "./issuer-keys.ts";

/** Whom a token stands for, and what it grants: nothing, where no claim is read. */
export interface TokenHolder {
  readonly caller: Caller;
  readonly grants: readonly string[];
  readonly expiresAtMs: number;
}

export type ReadToken = (token: string) => Promise<TokenHolder>;

const MAX_PRINCIPAL_LENGTH = 256;
const MAX_GRANTS = 1_000; // more are somebody else's
const REFETCH_MS = 30_000;

/** Verifies tokens by the keys that their issuer publishes. Throws `unauthenticated`, and says what is wrong. */
export function createTokenReader(
  settings: TokenSettings,
  onFault: (fault: string) => void,
  refetchMs = REFETCH_MS,
): ReadToken {
  const issuer = createIssuerKeys(settings.jwksUrl, { refetchMs, onFault });
  const expected = {
    issuer: settings.issuer,
    audience: [...settings.audiences],
    algorithms: [...settings.algorithms],
    clockTolerance: settings.clockToleranceMs / 1_000,
    requiredClaims: ["exp"],
  };
  return async (token) => {
    const { payload } = await verified(token, issuer.keys, expected).catch((error: unknown) => {
      const isUnknown = error instanceof errors.JWKSNoMatchingKey;
      const fault = isUnknown && issuer.fault !== undefined ? undefined : faultOf(error, settings);
      if (fault !== undefined) return refuseInvalid(fault);
      const cause = issuer.fault ?? error;
      const text = `the keys of the issuer cannot be read, so the token cannot be checked: ${messageFromUnknown(cause)}`;
      return refuse("unavailable", text, { reason: "SERVICE_UNAVAILABLE", cause });
    });
    const caller = callerFrom(payload, settings);
    return { caller, grants: grantsFrom(payload, settings, caller), expiresAtMs: (payload.exp ?? 0) * 1_000 };
  };
}

/** An issuer may publish another key by the same name: where none holds, they are asked for again. */
async function verified(token: string, keys: IssuerKeys["keys"], expected: JWTVerifyOptions) {
  try {
    return await verifiedByAny(token, keys, expected);
  } catch (error) {
    if (keys.coolingDown || !(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    await keys.reload();
    return await verifiedByAny(token, keys, expected);
  }
}

/** A token need not name its key (RFC 7515, 4.1.4): then each that fits is tried. */
async function verifiedByAny(token: string, keys: JWTVerifyGetKey, expected: JWTVerifyOptions) {
  try {
    return await jwtVerify(token, keys, expected);
  } catch (several) {
    if (!(several instanceof errors.JWKSMultipleMatchingKeys)) throw several;
    for await (const key of several) {
      try {
        return await jwtVerify(token, key, expected);
      } catch (error) {
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

function callerFrom(claims: JWTPayload, { principalClaim, rolesClaim, operatorRole }: TokenSettings): Caller {
  const principal = claimAt(claims, principalClaim);
  if (typeof principal !== "string" || !isName(principal)) {
    const text = `the claim ${principalClaim} of the token names no principal: a text of at most 256 characters that does not begin with session:`;
    return refuseInvalid(text);
  }
  // Whoever is `local` is an operator; that is for the key of the machine itself.
  if (principal === LOCAL_PRINCIPAL) return refuseInvalid(`a token cannot stand for ${LOCAL_PRINCIPAL}`);
  return { principal, isOperator: listAt(claims, rolesClaim).includes(operatorRole) };
}

/** The claim may list what means something to others. What has no grants is for operators, too. */
function grantsFrom(claims: JWTPayload, { grantsClaim }: TokenSettings, { isOperator }: Caller): string[] {
  const isGrant = (name: unknown): name is string =>
    typeof name === "string" && /^(default|(agent|space|tool):[\w.-]{1,128})$/.test(name);
  const listed = listAt(claims, grantsClaim).filter(isGrant).slice(0, MAX_GRANTS);
  return [...new Set(isOperator ? [DEFAULT_GRANT, ...listed] : listed)].sort();
}

/** A list may be one text, with blanks between, or an object of objects, as Zitadel's roles are. */
function listAt(claims: JWTPayload, path: string | undefined): unknown[] {
  const listed = path === undefined ? undefined : claimAt(claims, path);
  if (isObject(listed)) return Object.keys(listed).filter((name) => isObject(listed[name]));
  const items = typeof listed === "string" ? listed.split(" ") : listed;
  return Array.isArray(items) ? items : [];
}

/** Members of spaces whose ids begin with `session:` are agents. */
function isName(text: string): boolean {
  const isShort = text.length > 0 && text.length <= MAX_PRINCIPAL_LENGTH;
  return isShort && text.isWellFormed() && !/^session:|\p{Cc}|\p{Cf}/u.test(text);
}

/** Names may have dots themselves, as URLs do: of those that the path begins with, the longest counts. */
function claimAt(claims: unknown, path: string): unknown {
  if (!isObject(claims)) return undefined;
  if (Object.hasOwn(claims, path)) return claims[path];
  const names = Object.keys(claims).filter((name) => path.startsWith(`${name}.`));
  const [name] = names.toSorted((one, other) => other.length - one.length);
  return name === undefined ? undefined : claimAt(claims[name], path.slice(name.length + 1));
}

/** What is wrong with a token, without a word of it; undefined when the issuer's keys are the trouble. */
function faultOf(error: unknown, settings: TokenSettings): string | undefined {
  const { issuer, audiences, algorithms, clockToleranceMs } = settings;
  if (error instanceof errors.JWTExpired) return "the token has expired: get a new one";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === "missing") return `the token lacks the claim ${error.claim}`;
    if (error.claim === "aud") return `the token is for another audience than ${audiences.join(" or ")}`;
    if (error.claim === "iss") return `the token is of another issuer than ${issuer}`;
    if (error.claim === "nbf") return `the token is not valid yet, by more than ${clockToleranceMs} ms`;
    return `the claim ${error.claim} of the token does not hold`;
  }
  if (error instanceof errors.JWKSNoMatchingKey) return "the token is signed by a key that its issuer does not publish";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the signature of the token does not hold";
  if (error instanceof errors.JOSEAlgNotAllowed)
    return `the token is signed by another algorithm than ${algorithms.join(", ")}`;
  const unread = [errors.JWTInvalid, errors.JWSInvalid, errors.JOSENotSupported];
  return unread.some((kind) => error instanceof kind) ? "what was sent as a token cannot be read as one" : undefined;
}

export function refuseInvalid(text: string): never {
  return refuse("unauthenticated", text, { reason: "CREDENTIALS_INVALID" });
}
