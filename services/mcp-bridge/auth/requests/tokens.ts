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
import { z } from "zod";
import { AuthGrant, type ClientAuth } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createRedaction } from "#runtime/content/redaction.ts";
import { networkTextOf } from "../../link/outcome/outcome.ts";
import type { Challenge, Grant, Origin, PendingLogin } from "../record.ts";
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
export function tokensOfClient(origin: Origin, scope: string | undefined, asking: Asking): Promise<Grant> {
  return tokensBy({ grant_type: "client_credentials", ...(scope && { scope }) }, { origin, scope, asking });
}

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";

/** RFC 8693: for the person of the subject token, by as long as that holds. A token to renew it without that is not kept. */
export async function tokensInExchange(
  { origin, subject, scope }: { origin: Origin; subject: string; scope: string | undefined },
  { auth, fetch }: Asking,
): Promise<Grant> {
  if (origin.metadata === undefined) throw new Error(`${origin.authorizationServer} publishes no metadata`);
  const asked = {
    grant_type: EXCHANGE,
    subject_token: subject,
    subject_token_type: ACCESS_TOKEN,
    requested_token_type: ACCESS_TOKEN,
    ...(auth?.audience && { audience: auth.audience }),
    ...(scope && { scope }),
  };
  const straight: FetchLike = (url, init) => fetch(url, { ...init, redirect: "error" });
  const { refreshToken: _, ...grant } = await tokensBy(asked, { origin, scope, asking: { auth, fetch: straight } });
  return grant;
}

async function tokensBy(
  asked: Record<string, string>,
  { origin, scope, asking }: { origin: Origin; scope: string | undefined; asking: Asking },
): Promise<Grant> {
  const { information, ...more } = await clientOf(origin, asking.auth);
  const none = () => {};
  const provider = {
    ...more,
    redirectUrl: undefined,
    clientMetadata: { redirect_uris: [] },
    clientInformation: () => ({ ...information, issuer: origin.metadata?.issuer ?? origin.authorizationServer }),
    prepareTokenRequest: () => new URLSearchParams(asked),
    ...{ tokens: () => undefined, saveTokens: none, redirectToAuthorization: none, saveCodeVerifier: none },
    codeVerifier: () => "",
  };
  const { resource, ...where } = whereOf(origin);
  const tokens = await fetchToken(provider, origin.authorizationServer, {
    ...where,
    ...(asked.audience === undefined && { resource }), // one name of the server is enough
    fetchFn: asking.fetch,
  });
  return grantFrom(origin, tokens, scope);
}

/** RFC 7009, where the authorization server has it. */
export async function revokeTokens({ origin, refreshToken, accessToken }: Grant, asking: Asking): Promise<void> {
  const endpoint = revocationEndpoint(origin.metadata);
  if (endpoint === undefined) return;
  const { information, addClientAuthentication } = await clientOf(origin, asking.auth);
  const { client_id } = information;
  // a parameter without a value is none (RFC 6749, 3.2); servers by the Python SDK of MCP (2.3) refuse a revocation without it
  const body = new URLSearchParams({ token: refreshToken ?? accessToken, client_id, client_secret: "" });
  const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });
  await addClientAuthentication(headers, body, endpoint, origin.metadata);
  const response = await asking.fetch(endpoint, { method: "POST", headers, body });
  await response.body?.cancel();
}

function whereOf({ metadata, resource }: Origin) {
  return { resource, ...(metadata && { metadata }) };
}

function grantFrom(origin: Origin, tokens: OAuthTokens, asked: string | undefined): Grant {
  const { access_token, refresh_token, scope = asked, expires_in = 0, token_type } = tokens;
  if (token_type.toLowerCase() !== "bearer") throw new Error(`it gives tokens of the type ${token_type}, not Bearer`);
  if (!/^[\x21-\x7e]+$/.test(access_token)) throw new Error("it gives a token that no header can carry");
  // no time, 0 and null say that no end is known
  const renewAtMs = expires_in > 0 ? Date.now() + Math.max(expires_in * 0.8, expires_in - EARLY_S) * 1_000 : undefined;
  return { origin, accessToken: access_token, refreshToken: refresh_token, scope, renewAtMs };
}

/** Whether the grant itself is no more: asked again, it would be refused again. */
export function isGrantOver(error: unknown): error is OAuthError {
  return error instanceof OAuthError && error.code !== OAuthErrorCode.ServerError && !isTemporary(error);
}

/** Errors come from elsewhere, whoever sent them, and may repeat what that was. */
export function isWord(text: string): boolean {
  return /^[a-z_]{1,64}$/.test(text);
}

function isTemporary({ code }: OAuthError): boolean {
  return code === OAuthErrorCode.TemporarilyUnavailable || code === OAuthErrorCode.TooManyRequests;
}

const NO_ANSWER = "its answer is no answer of OAuth";

/** What went wrong, without anything secret: authorization servers may repeat what they were sent. */
export function textOfFault(error: unknown, secrets: readonly (string | undefined)[]): string {
  const isOther = error instanceof OAuthError && error.code === OAuthErrorCode.ServerError;
  const text = isOther ? NO_ANSWER : textOf(error);
  return withoutTokens(text, secrets).slice(0, 500);
}

export function withoutTokens(text: string, secrets: readonly (string | undefined)[]): string {
  const named = secrets.flatMap((value, index) => (value ? [[`of the login ${index}`, value] as const] : []));
  return createRedaction(new Map(named))(text);
}

function textOf(error: unknown): string {
  if (error instanceof OAuthError) return `${error.code}: ${error.message}`;
  if (error instanceof SyntaxError) return `${NO_ANSWER}: it is no JSON`; // its message has a piece of it, which may be a token
  if (error instanceof z.core.$ZodError) return `${NO_ANSWER}: ${error.issues.map(textOfIssue).join(", ")}`;
  const isWrapped = error instanceof TypeError && error.cause instanceof Error; // "fetch failed", it says
  return networkTextOf(isWrapped ? error.cause : error);
}

function textOfIssue({ path, message }: z.core.$ZodIssue): string {
  const place = path.length > 0 ? `${path.join(".")}: ` : "";
  return place + message.replace("Invalid input: ", "");
}

/** Whether nobody is asked, so that no refresh token is needed. */
export function isUnasked(auth: Pick<ClientAuth, "grant"> | undefined): boolean {
  return auth?.grant === AuthGrant.CLIENT_CREDENTIALS || auth?.grant === AuthGrant.TOKEN_EXCHANGE;
}

/**
 * What was granted goes on to be asked for, or a further scope would cost the others. A challenge that names no scope means what the
 * resource lists.
 */
export function scopeFor(
  challenge: Pick<Challenge, "scope"> | undefined,
  granted: string | undefined,
  { scopes, metadata }: Origin & { scopes?: string | undefined },
  auth: Pick<ClientAuth, "scopes" | "grant"> | undefined,
): string | undefined {
  const declared = auth?.scopes.length ? auth.scopes.join(" ") : undefined;
  const listed = granted === undefined || challenge ? scopes : undefined;
  const wanted = computeScopeUnion(granted, challenge?.scope ?? declared ?? listed);
  const isOffline = wanted && metadata?.scopes_supported?.includes("offline_access");
  return isOffline && !isUnasked(auth) ? computeScopeUnion(wanted, "offline_access") : wanted;
}
