import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  calculatePKCECodeChallenge,
  discoveryRequest,
  generateRandomCodeVerifier,
  generateRandomNonce,
  generateRandomState,
  None,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processRefreshTokenResponse,
  refreshTokenGrantRequest,
  type TokenEndpointResponse,
  validateAuthResponse,
} from "oauth4webapi";

/** How the gateway says that people log in. */
export interface LoginSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly scope: string;
  readonly audience: string;
}

/** A login that the issuer has not answered yet. */
export interface PendingLogin {
  readonly settings: LoginSettings;
  readonly verifier: string;
  readonly state: string;
  readonly nonce: string;
  /** Where the page stood. */
  readonly place: string;
}

export interface Tokens {
  readonly settings: LoginSettings;
  readonly accessToken: string;
  readonly refreshToken?: string | undefined;
  /** When the access token ends, in ms of the clock; undefined where the issuer does not say. */
  readonly endMs?: number | undefined;
}

const redirectUri = () => `${location.origin}/`;

/** Where people log in, and what the answer is to be held against. */
export async function prepareLogin(
  settings: LoginSettings,
  place: string,
): Promise<{ address: string; pending: PendingLogin }> {
  const { authorization_endpoint: endpoint } = await discover(settings);
  if (endpoint === undefined) throw new Error(`${settings.issuer} names no place to log in`);
  const verifier = generateRandomCodeVerifier();
  const pending = { settings, verifier, state: generateRandomState(), nonce: generateRandomNonce(), place };
  const address = new URL(endpoint);
  const parameters = {
    response_type: "code",
    client_id: settings.clientId,
    redirect_uri: redirectUri(),
    scope: settings.scope,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...audienceOf(settings),
  };
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
  return { address: address.href, pending };
}

/** Exchanges what the issuer answered; throws what it refused, in its words. */
export async function finishLogin(
  { settings, verifier, state, nonce }: PendingLogin,
  answered: URLSearchParams,
): Promise<Tokens> {
  const server = await discover(settings);
  const client = { client_id: settings.clientId };
  const code = validateAuthResponse(server, client, answered, state);
  const options = { ...transportTo(settings), additionalParameters: audienceOf(settings) };
  const response = await authorizationCodeGrantRequest(server, client, None(), code, redirectUri(), verifier, options);
  const isOpenId = settings.scope.split(" ").includes("openid");
  const expected = isOpenId ? { expectedNonce: nonce } : {};
  return tokensFrom(settings, await processAuthorizationCodeResponse(server, client, response, expected));
}

/** Exchanges tokens for later ones. */
export async function exchangeTokens({ settings, refreshToken = "" }: Tokens): Promise<Tokens> {
  const server = await discover(settings);
  const client = { client_id: settings.clientId };
  const options = { ...transportTo(settings), additionalParameters: audienceOf(settings) };
  const response = await refreshTokenGrantRequest(server, client, None(), refreshToken, options);
  return tokensFrom(settings, await processRefreshTokenResponse(server, client, response), refreshToken);
}

function tokensFrom(settings: LoginSettings, response: TokenEndpointResponse, earlier?: string): Tokens {
  const { access_token: accessToken, refresh_token: refreshToken = earlier, expires_in: seconds } = response;
  const endMs = seconds === undefined ? undefined : Date.now() + seconds * 1_000;
  return { settings, accessToken, refreshToken, endMs };
}

async function discover(settings: LoginSettings): Promise<AuthorizationServer> {
  const issuer = new URL(settings.issuer);
  return processDiscoveryResponse(issuer, await discoveryRequest(issuer, transportTo(settings)));
}

/** For whom tokens are to be: issuers go by one name of it or the other, and pass over what they do not know. */
function audienceOf({ audience }: LoginSettings): Record<string, string> {
  return URL.canParse(audience) ? { audience, resource: audience } : { audience };
}

/** An issuer without TLS is one on this machine: the gateway takes the keys of no other. */
function transportTo({ issuer }: LoginSettings): { [allowInsecureRequests]: boolean } {
  return { [allowInsecureRequests]: issuer.startsWith("http:") };
}
