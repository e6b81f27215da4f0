import type { ReadTrustList } from "#runtime/bus/credentials/trust/trust-list.ts";
import type { Credentials } from "#runtime/config/access/gateway-credentials.ts";
import { createCallKeyReader, isCallKey } from "#runtime/rpc/access/tokens/call-keys.ts";
import type { HttpRequest } from "#runtime/rpc/http/messages.ts";
import { type Caller, LOCAL_PRINCIPAL, principalOf } from "#runtime/rpc/identity.ts";
import { createKeyring } from "./api-keys.ts";
import type { GrantRecords } from "./grant-records.ts";
import type { HeldTokens } from "./held-tokens.ts";
import { createTokenReader, refuseInvalid, type TokenHolder } from "./tokens.ts";

/** Says who sends a request. Throws `unauthenticated` when its credentials are missing or hold for nobody. */
export type Authenticate = (request: HttpRequest) => Caller | Promise<Caller>;

export interface AuthenticationOptions extends Credentials {
  /** The principals that may do what reaches further than their own sessions. */
  readonly operators: ReadonlySet<string>;
  readonly grantRecords: Pick<GrantRecords, "keep">;
  readonly heldTokens: Pick<HeldTokens, "keep"> | undefined;
  /** Whose word counts of those who make keys of one call. */
  readonly trust: ReadTrustList;
  readonly onFault: (fault: string) => void;
}

/**
 * By `Authorization: Bearer KEY` or `X-Api-Key: KEY`, where a JWT may stand for a key, or a key of one call for its principal. Where nobody needs a key everybody is
 * `local`, and the gateway listens on the loopback interface only.
 */
export function createAuthenticate(options: AuthenticationOptions): Authenticate {
  const { auth, apiKeys, tokens, operators, grantRecords, heldTokens, trust, onFault } = options;
  const callerFor = (principal: string): Caller => ({ principal, isOperator: operators.has(principal) });
  const holdsKey = (principal: string) => apiKeys.some((apiKey) => apiKey.principal === principal);
  const isKnown = (principal: string) => auth === "none" || tokens !== undefined || holdsKey(principal);
  const readCallKey = createCallKeyReader({ trust, isKnown });
  if (auth === "none")
    return (request) => {
      const key = credentialsOf(request).find(isCallKey);
      return key === undefined ? callerFor(LOCAL_PRINCIPAL) : readCallKey(key);
    };
  const holderOf = createKeyring(apiKeys);
  const readToken = tokens && createTokenReader(tokens, onFault);
  const callerOfToken = async (token: string, { caller, grants, expiresAtMs }: TokenHolder): Promise<Caller> => {
    const principal = principalOf(caller);
    await grantRecords.keep(principal, grants);
    await heldTokens?.keep({ token, principal, expiresAtMs });
    return operators.has(principal) ? { ...caller, isOperator: true } : caller;
  };
  return (request) => {
    const given = credentialOf(request);
    if (given === undefined)
      return refuseInvalid("this gateway wants a key: send it as `Authorization: Bearer KEY` or `X-Api-Key: KEY`");
    const holder = holderOf(given);
    if (holder !== undefined) return callerFor(holder);
    if (isCallKey(given)) return readCallKey(given);
    const isJwt = /^[\w-]+\.[\w-]+\.[\w-]*$/.test(given);
    if (readToken && isJwt) return readToken(given).then((holder) => callerOfToken(given, holder));
    return refuseInvalid("this gateway does not know the key");
  };
}

/** What may be a key of the request. */
function credentialsOf({ headers }: HttpRequest): string[] {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  const key = String(headers["x-api-key"] ?? "") || undefined;
  return [bearer, key].filter((given) => given !== undefined);
}

/** Two that differ may be of two callers, one of which somebody else has put there: neither counts. */
function credentialOf(request: HttpRequest): string | undefined {
  const isAuthorization = (_: string, index: number, all: string[]) =>
    index % 2 === 1 && /^authorization$/i.test(all[index - 1] ?? "");
  const sent = new Set(request.rawHeaders.filter(isAuthorization)); // of several, `headers` has the first alone
  const [first, second = first] = credentialsOf(request);
  if (sent.size > 1 || first !== second) {
    const text = "the request has two keys that differ: send one of them, in `Authorization` or in `X-Api-Key`";
    return refuseInvalid(text);
  }
  return first;
}

/** Whether the request comes by a key of one call, that holds or not: such a one is held to its bounds where nobody needs a key, too. */
export function bearsCallKey(request: HttpRequest): boolean {
  return credentialsOf(request).some(isCallKey);
}
