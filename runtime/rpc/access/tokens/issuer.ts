import { SignJWT } from "jose/jwt/sign";
import { importJWK } from "jose/key/import"; // each by itself: the whole library costs every service 8 MB more
import { type BusLogin, jwkOfLogin, publicKeyOf } from "#runtime/bus/credentials/login.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { type Caller, OPERATOR_ROLE } from "../../identity.ts";

export interface Issuer {
  /** The service that signs. */
  readonly name: string;
  /** Says to `audience`, a name on the bus, who asks; at once, unless it has to be signed first. */
  tokenFor(caller: Caller, audience: string): string | Promise<string>;
}

/** Long enough that signing costs nothing, short enough that a token which leaked is soon worth nothing. */
const LIFE_MS = 5 * 60_000;

const MAX_TOKENS = 10_000;

interface Issued {
  token: string | Promise<string>;
  readonly renewAt: number;
}

/** What a service says by a signature, to whom, and for how long. */
interface Statement {
  readonly audience: string;
  readonly expireMs: number;
  readonly subject?: string | undefined;
  readonly claims: Readonly<Record<string, unknown>>;
}

export type Sign = (statement: Statement) => Promise<string>;

/** Signs by the key that the service has for NATS. */
export function createSigner(login: BusLogin): Sign {
  const publicKey = publicKeyOf(login);
  const imported = importJWK(jwkOfLogin(login));
  return async ({ audience, expireMs, subject, claims }) => {
    const token = new SignJWT({ ...claims })
      .setProtectedHeader({ alg: "EdDSA" })
      .setIssuer(publicKey)
      .setAudience(audience)
      .setExpirationTime(new Date(expireMs));
    if (subject !== undefined) token.setSubject(subject);
    return token.sign(await imported);
  };
}

/** Tokens are kept and issued anew at half of their life. */
export function createIssuer(login: BusLogin, now: () => number = Date.now): Issuer {
  const signed = createSigner(login);
  const issuedByKey = new BoundedMap<string, Issued>(MAX_TOKENS);

  async function sign({ principal, service, isOperator, callKey }: Caller, audience: string): Promise<string> {
    const claims = {
      ...(isOperator && { roles: [OPERATOR_ROLE] }),
      ...(service && { svc: service }),
      ...(callKey && { call: callKey.callId, key: callKey.id }),
    };
    return signed({ audience, expireMs: now() + LIFE_MS, subject: principal, claims });
  }

  return {
    name: login.name,
    tokenFor(caller, audience) {
      const { principal, service = "", isOperator, callKey } = caller;
      const bound = callKey ? `${callKey.callId} ${callKey.id}` : "";
      // the principal is last: it may hold any character
      const key = `${audience} ${service} ${isOperator} ${bound} ${principal === undefined ? "" : `:${principal}`}`;
      const known = issuedByKey.get(key);
      if (known && known.renewAt > now()) return known.token;
      const token = sign(caller, audience);
      const issued: Issued = { token, renewAt: now() + LIFE_MS / 2 };
      issuedByKey.set(key, issued);
      token.then(
        (text) => {
          issued.token = text;
        },
        () => issuedByKey.delete(key), // who waits for it is told
      );
      return token;
    },
  };
}

const issuers = new WeakMap<BusLogin, Issuer>();

/** One for all clients that sign in by it, so that each token is signed once. */
export function issuerOf(login: BusLogin): Issuer {
  return getOrInsertComputed(issuers, login, () => createIssuer(login));
}
