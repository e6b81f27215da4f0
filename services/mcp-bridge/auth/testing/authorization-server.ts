import { generateKeyPairSync } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import Provider, { type Configuration, type KoaContextWithOIDC } from "oidc-provider";
import { listen } from "../../testing/servers/http-server.ts";

export interface AuthorizationServer extends AsyncDisposable {
  readonly issuer: string;
  readonly provider: Provider;
  /** What was asked of it: method and path. */
  readonly requests: string[];
  /** Parameters of requests to the token endpoint. */
  readonly tokenRequests: URLSearchParams[];
  /** Changes an answer before it goes out; for metadata that is to be odd. */
  rewrite: (path: string, body: string) => string;
}

export interface AuthorizationServerOptions {
  configuration?: Configuration;
  /** Seconds that an access token holds. */
  accessTokenTtl?: number;
  /** Whose subject token it is that is to be exchanged (RFC 8693); throws for one that is refused. */
  personOf?: (subjectToken: string) => string | Promise<string>;
}

export const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const signingKey = { ...privateKey.export({ format: "jwk" }), use: "sig", alg: "ES256", kid: "k1" };

/** An OpenID provider on loopback, as its library is: whoever comes is logged in as `ada` and agrees to everything. */
export async function openAuthorizationServer(options: AuthorizationServerOptions = {}): Promise<AuthorizationServer> {
  let answer: (request: IncomingMessage, response: ServerResponse) => unknown = () => {};
  const server = await listen((request, response) => answer(request, response));
  const issuer = `http://127.0.0.1:${server.port}`;
  const provider = new Provider(issuer, configurationOf(options));
  if (options.personOf) exchange(provider, options.personOf);
  const own: AuthorizationServer = {
    issuer,
    provider,
    requests: [],
    tokenRequests: [],
    rewrite: (_, body) => body,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
  provider.use(async (context, next) => {
    own.requests.push(`${context.method} ${context.path}`);
    if (context.path.startsWith("/interaction/")) {
      await provider.interactionFinished(context.req, context.res, { login: { accountId: "ada" }, consent: {} });
      context.respond = false;
      return;
    }
    await next();
    const { oidc } = context as unknown as { oidc?: { body?: Record<string, string> } };
    if (context.path === "/token") own.tokenRequests.push(new URLSearchParams(oidc?.body));
    if (context.path.startsWith("/.well-known/") && context.body)
      context.body = JSON.parse(own.rewrite(context.path, JSON.stringify(context.body)));
  });
  answer = provider.callback();
  return own;
}

/** An exchange as its own library has none: for the audience or resource that is asked for, whoever that is. */
function exchange(provider: Provider, personOf: NonNullable<AuthorizationServerOptions["personOf"]>): void {
  const names = ["subject_token", "subject_token_type", "requested_token_type", "audience", "resource", "scope"];
  const answer = async (context: KoaContextWithOIDC) => {
    const { client, params } = context.oidc;
    const asked = params as Record<string, string | undefined>;
    const accountId = await personOf(asked.subject_token ?? "");
    const token = new provider.AccessToken({
      accountId,
      client: client!,
      grantId: "exchanged",
      gty: "token_exchange",
      ...(asked.scope && { scope: asked.scope }),
    } as never);
    token.aud = asked.audience ?? asked.resource ?? "";
    const access_token = await token.save();
    context.body = {
      ...{ access_token, issued_token_type: "urn:ietf:params:oauth:token-type:access_token", token_type: "Bearer" },
      ...{ expires_in: token.expiration, refresh_token: "of no use" },
    };
  };
  provider.registerGrantType(TOKEN_EXCHANGE, answer, names);
}

function configurationOf({ configuration = {}, accessTokenTtl = 600 }: AuthorizationServerOptions): Configuration {
  const { features, ...rest } = configuration;
  return {
    jwks: { keys: [signingKey] },
    cookies: { keys: ["for tests"] },
    scopes: ["openid", "offline_access", "read", "write", "admin"],
    clientAuthMethods: ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
    clientDefaults: { id_token_signed_response_alg: "ES256", grant_types: ["authorization_code", "refresh_token"] },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    pkce: { required: () => true },
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: accessTokenTtl, ClientCredentials: accessTokenTtl },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: "read write admin",
          audience: resource,
          accessTokenTTL: accessTokenTtl,
          accessTokenFormat: "opaque",
        }),
      },
      ...features,
    },
    async loadExistingGrant(context) {
      const { provider, session, client, params } = context.oidc;
      const grant = new provider.Grant({
        ...(session?.accountId !== undefined && { accountId: session.accountId }),
        ...(client && { clientId: client.clientId }),
      });
      const { scope = "", resource } = params as { scope?: string; resource?: string };
      grant.addOIDCScope(`openid ${scope}`);
      if (resource) grant.addResourceScope(resource, scope);
      await grant.save();
      return grant;
    },
    ...rest,
  };
}

/** Opens a link as a browser does that agrees to everything, and gives where it ends: at the redirect URI. */
export async function agree(link: string, redirectUri: string): Promise<URL> {
  const cookies = new Map<string, string>();
  for (let url = new URL(link), hop = 0; hop < 10; hop++) {
    if (url.href.startsWith(redirectUri)) return url;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location === null) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
    url = new URL(location, url);
  }
  throw new Error("too many redirects");
}
