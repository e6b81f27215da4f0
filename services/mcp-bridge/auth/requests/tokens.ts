import {
  computeScopeUnion,
  exchangeAuthorization,
  type FetchLike,
  fetchToken,
  OAuthError,
  OAuthErrorCode,
  type OAuthTokens,
  refreshAuthorization,
} from "@modelcontextprotocol/client";
import { AuthGrant, type ClientAuth } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createRedaction } from "#runtime/content/redaction.ts";
import { networkTextOf } from "../../link/outcome/outcome.ts";
import type { Grant, Origin, PendingLogin } from "../record.ts";
import { clientOf } from "./client.ts";
import { revocationEndpoint } from "./discovery.ts";

/** With what tokens are asked for. */
export interface Asking {
  /** The entry's, with its secrets resolved. */
  auth: ClientAuth | undefined;
  fetch: FetchLike;
}

/** A token is renewed so long before its end, or when a fifth of its life is left. */
const EARLY_S = 30;

export async function tokensForCode(
  { origin, codeVerifier, scope }: PendingLogin,
  { code, issuer }: { code: string; issuer: string | undefined },
  asking: Asking,
): Promise<Grant> {
  const { information, ...more } = await clientOf(origin, asking.auth);
  const tokens = await exchangeAuthorization(origin.authorizationServer, {
    ...more,
    ...whereOf(origin),
    clientInformation: information,
    authorizationCode: code,
    ...(issuer !== undefined && { iss: issuer }),
    codeVerifier,
    redirectUri: origin.redirectUri ?? "",
    fetchFn: asking.fetch,
  });
  return grantFrom(origin, tokens, scope);
}

export async function renewedTokens(grant: Grant, { auth, fetch }: Asking): Promise<Grant> {
  const { origin, refreshToken = "", scope } = grant;
  const { information, ...more } = await clientOf(origin, auth);
  const asked = { ...more, ...whereOf(origin), clientInformation: information, refreshToken, fetchFn: fetch };
  return grantFrom(origin, await refreshAuthorization(origin.authorizationServer, asked), scope);
}

/** For the client itself: nobody is asked. */
export async function tokensOfClient(origin: Origin, scope: string | undefined, asking: Asking): Promise<Grant> {
  const { information, ...more } = await clientOf(origin, asking.auth);
  const none = () => {};
  const provider = {
    ...more,
    redirectUrl: undefined,
    clientMetadata: { redirect_uris: [] },
    clientInformation: () => ({ ...information, issuer: origin.metadata?.issuer ?? origin.authorizationServer }),
    prepareTokenRequest: () => new URLSearchParams({ grant_type: "client_credentials", ...(scope && { scope }) }),
    ...{ tokens: () => undefined, saveTokens: none, redirectToAuthorization: none, saveCodeVerifier: none },
    codeVerifier: () => "",
  };
  const tokens = await fetchToken(provider, origin.authorizationServer, {
    ...whereOf(origin),
    fetchFn: asking.fetch,
  });
  return grantFrom(origin, tokens, scope);
}

/** RFC 7009, where the authorization server has it. */
export async function revokeTokens({ origin, refreshToken, accessToken }: Grant, asking: Asking): Promise<void> {
  const endpoint = revocationEndpoint(origin.metadata);
  if (endpoint === undefined) return;
  const { information, addClientAuthentication } = await clientOf(origin, asking.auth);
  const { client_id, client_secret } = information;
  const body = new URLSearchParams({ token: refreshToken ?? accessToken, client_id });
  if (client_secret !== undefined) body.set("client_secret", client_secret);
  const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });
  await addClientAuthentication?.(headers, body, endpoint, origin.metadata);
  const response = await asking.fetch(endpoint, { method: "POST", headers, body });
  await response.body?.cancel();
}

function whereOf({ metadata, resource }: Origin) {
  return { resource, ...(metadata && { metadata }) };
}

function grantFrom(origin: Origin, tokens: OAuthTokens, asked: string | undefined): Grant {
  const { access_token, refresh_token, scope = asked, expires_in, token_type } = tokens;
  if (token_type.toLowerCase() !== "bearer") throw new Error(`it gives tokens of the type ${token_type}, not Bearer`);
  const renewAtMs =
    expires_in === undefined ? undefined : Date.now() + Math.max(expires_in * 0.8, expires_in - EARLY_S) * 1_000;
  return { origin, accessToken: access_token, refreshToken: refresh_token, scope, renewAtMs };
}

/** Whether the grant itself is no more: asked again, it would be refused again. */
export function isGrantOver(error: unknown): boolean {
  return error instanceof OAuthError && error.code !== OAuthErrorCode.ServerError && !isTemporary(error);
}

function isTemporary({ code }: OAuthError): boolean {
  return code === OAuthErrorCode.TemporarilyUnavailable || code === OAuthErrorCode.TooManyRequests;
}

/** What went wrong, without anything secret: authorization servers may repeat what they were sent. */
export function textOfFault(error: unknown, secrets: readonly (string | undefined)[] = []): string {
  const isOther = error instanceof OAuthError && error.code === OAuthErrorCode.ServerError;
  const text = isOther ? "its answer is no answer of OAuth" : textOf(error);
  return withoutTokens(text, secrets).slice(0, 500);
}

export function withoutTokens(text: string, secrets: readonly (string | undefined)[]): string {
  const named = secrets.flatMap((value, index) => (value ? [[`of the login ${index}`, value] as const] : []));
  return createRedaction(new Map(named))(text);
}

function textOf(error: unknown): string {
  if (error instanceof OAuthError) return `${error.code}: ${error.message}`;
  const isWrapped = error instanceof TypeError && error.cause instanceof Error; // "fetch failed", it says
  return networkTextOf(isWrapped ? error.cause : error);
}

/** What was granted goes on to be asked for, or a further scope would cost the others. */
export function scopeFor(
  asked: string | undefined,
  granted: string | undefined,
  { scopes, metadata }: Origin & { scopes?: string | undefined },
  auth: Pick<ClientAuth, "scopes" | "grant"> | undefined,
): string | undefined {
  const declared = auth?.scopes.length ? auth.scopes.join(" ") : undefined;
  const wanted = computeScopeUnion(granted, asked ?? declared ?? (granted === undefined ? scopes : undefined));
  const isOfClient = auth?.grant === AuthGrant.CLIENT_CREDENTIALS; // it needs no refresh token
  const isOffline = wanted && metadata?.scopes_supported?.includes("offline_access");
  return isOffline && !isOfClient ? computeScopeUnion(wanted, "offline_access") : wanted;
}
