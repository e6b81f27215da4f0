import type { JWTPayload } from "jose";
import { JWTClaimValidationFailed, JWTExpired } from "jose/errors";
import { decodeJwt } from "jose/jwt/decode";
import { jwtVerify } from "jose/jwt/verify";
import { importJWK } from "jose/key/import";
import { jwkOfPublicKey } from "#runtime/bus/credentials/login.ts";
import type { ReadTrustList, TrustedKey } from "#runtime/bus/credentials/trust/trust-list.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { type Caller, OPERATOR_ROLE } from "../../identity.ts";

/*
 * Whose word counts for what. A token holds if
 *
 * token-1  it is signed by a key of the trust list, and has not expired: clocks of machines may be 30 s apart;
 * token-2  it is for this very service (or this instance of it), so that nobody can use what was sent to him elsewhere;
 * token-3  its signer may speak for whom it names: see `SpeaksFor`.
 */
export interface VerifierOptions {
  /** The name on the bus under which requests come. */
  readonly audience: string;
  readonly trust: ReadTrustList;
  readonly now?: () => number;
}

/** Who asks, by a token. Throws `unauthenticated` if it does not hold, and says why. */
export type Verify = (token: string) => Caller | Promise<Caller>;

const LEEWAY_S = 30;
const MAX_TOKENS = 10_000;

/** Each token is verified once: its text stands for it from then on, as long as it lives. */
export function createVerifier({ audience, trust, now = Date.now }: VerifierOptions): Verify {
  const verified = new BoundedMap<string, { readonly caller: Caller; readonly until: number }>(MAX_TOKENS);

  async function verify(token: string): Promise<Caller> {
    const { payload, key, untilMs } = await readSigned(token, { audience, trust, now, refuse: refuseToken });
    const caller = callerFrom(payload, key, audience);
    verified.set(token, { caller, until: untilMs });
    return caller;
  }

  return (token) => {
    const known = verified.get(token);
    return known && known.until > now() ? known.caller : verify(token);
  };
}

export interface SignedOptions extends Required<VerifierOptions> {
  /** Says what is wrong with a text that does not hold. */
  readonly refuse: (fault: string, cause?: unknown) => never;
}

/** What a service has signed for this audience: its claims, and whose word they are (token-1, token-2). */
export async function readSigned(
  token: string,
  { audience, trust, now, refuse }: SignedOptions,
): Promise<{ payload: JWTPayload; key: TrustedKey; untilMs: number }> {
  const key =
    (await trust()).get(issuerOf(token, refuse)) ??
    refuse("is signed by a key that is not trusted here: all services of a bus need one list, trust.json");
  const publicKey = await importJWK(jwkOfPublicKey(key.publicKey));
  const expected = { audience, algorithms: ["EdDSA"], clockTolerance: LEEWAY_S, requiredClaims: ["exp"] };
  const { payload } = await jwtVerify(token, publicKey, { ...expected, currentDate: new Date(now()) }).catch(
    (error: unknown) => refuse(faultOf(error, key, audience), error),
  );
  return { payload, key, untilMs: ((payload.exp ?? 0) + LEEWAY_S) * 1_000 };
}

function issuerOf(token: string, refuse: SignedOptions["refuse"]): string {
  try {
    return decodeJwt(token).iss ?? "";
  } catch (cause) {
    return refuse("cannot be read", cause);
  }
}

function callerFrom(
  { sub, svc, roles, call, key }: JWTPayload,
  { name, speaksFor }: TrustedKey,
  audience: string,
): Caller {
  const isGateway = speaksFor === "callers" || speaksFor === "everybody";
  const isOwnInstance = name === audience.split(".", 1)[0];
  if (svc === undefined && !isGateway) refuseToken(`is signed by ${name}, which lets nobody in`);
  if (svc !== undefined && speaksFor === "callers") refuseToken(`is signed by ${name}, which does not ask for itself`);
  if (svc !== undefined && svc !== name && speaksFor !== "everybody")
    refuseToken(`is signed by ${name}, which cannot speak for another service`);
  if (sub !== undefined && !isGateway && speaksFor !== "principals" && !isOwnInstance)
    refuseToken(`is signed by ${name}, which cannot speak for principals`);
  const isOperator = Array.isArray(roles) && roles.includes(OPERATOR_ROLE);
  if (isOperator && !isGateway) refuseToken(`is signed by ${name}, which gives no roles`);
  return {
    ...(sub && { principal: sub }),
    ...(typeof svc === "string" && svc && { service: svc }),
    isOperator,
    ...(call !== undefined && { callKey: { callId: String(call), id: String(key) } }),
  };
}

function faultOf(error: unknown, { name }: TrustedKey, audience: string): string {
  if (error instanceof JWTExpired) return `of ${name} has expired: the clocks of machines may be ${LEEWAY_S} s apart`;
  if (error instanceof JWTClaimValidationFailed && error.claim === "aud")
    return `of ${name} is for another than ${audience}`;
  return `of ${name} does not hold: ${messageFromUnknown(error)}`;
}

function refuseToken(fault: string, cause?: unknown): never {
  const options = { reason: "CREDENTIALS_INVALID" as const, cause };
  return refuse("unauthenticated", `the identity token of the request ${fault}`, options);
}
