import {
  checkResourceAllowed,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  type FetchLike,
  resourceUrlFromServerUrl,
} from "@modelcontextprotocol/client";
import type { Origin } from "../record.ts";
import { requireSafe } from "./document-fetch.ts";

/** What servers say of the tokens that they take. */
export interface Discovered extends Origin {
  /** Those that the protected resource lists. */
  scopes: string | undefined;
}

type Metadata = NonNullable<Origin["metadata"]>;

/** What is kept of an authorization server's metadata, which may list whatever it likes. */
const KEPT = [
  "issuer",
  "authorization_endpoint",
  "token_endpoint",
  "registration_endpoint",
  "revocation_endpoint",
  "response_types_supported",
  "code_challenge_methods_supported",
  "token_endpoint_auth_methods_supported",
  "authorization_response_iss_parameter_supported",
  "client_id_metadata_document_supported",
];

/** Where the metadata of a server is, beside the well-known places. */
export interface MetadataPlaces {
  /** As the server says now: it is there, or nowhere. */
  readonly named: string | undefined;
  /** As the server said before. */
  readonly known: string | undefined;
}

/**
 * Finds where the tokens of a server come from: its protected-resource metadata (RFC 9728) names the authorization server, whose
 * own metadata (RFC 8414, or OpenID's) must name itself. A server of revision 2025-03-26 is its own.
 */
export async function discover(
  serverUrl: URL,
  { issuer, fetch, ...places }: MetadataPlaces & { issuer: string; fetch: FetchLike },
): Promise<Discovered> {
  const found = await readResourceMetadata(serverUrl, places, fetch);
  const resourceMetadata = found?.metadata;
  const servers = resourceMetadata?.authorization_servers ?? [];
  const authorizationServer = chooseServer(servers, issuer) ?? new URL("/", serverUrl).href;
  requireSafe(new URL(authorizationServer));
  const metadata = await discoverAuthorizationServerMetadata(authorizationServer, { fetchFn: fetch });
  if (metadata === undefined && resourceMetadata !== undefined)
    throw new Error(`the authorization server ${authorizationServer} publishes no metadata`);
  if (issuer !== "" && !isSameIssuer(metadata?.issuer ?? authorizationServer, issuer))
    throw new Error(`it is not ${issuer} that gives tokens for it, to which alone the client's secret may go`);
  if (metadata) requireUsable(metadata);
  return {
    authorizationServer,
    ...(metadata && { metadata: keptOf(metadata) }),
    resourceMetadataUrl: found?.resourceMetadataUrl,
    resource: resourceMetadata?.resource ?? resourceUrlFromServerUrl(serverUrl).href,
    scopes: resourceMetadata?.scopes_supported?.join(" "),
  };
}

async function readResourceMetadata(serverUrl: URL, { named, known }: MetadataPlaces, fetch: FetchLike) {
  const readAt = async (place: { resourceMetadataUrl?: string }) => {
    return { metadata: await discoverOAuthProtectedResourceMetadata(serverUrl, place, fetch), ...place };
  };
  const readIfThere = (place: { resourceMetadataUrl?: string }) => readAt(place).catch(() => undefined);
  const atKnown = named === undefined && known !== undefined && (await readIfThere({ resourceMetadataUrl: known }));
  const found = atKnown || (await (named === undefined ? readIfThere({}) : readAt({ resourceMetadataUrl: named })));
  if (found === undefined) return undefined;
  const { resource } = found.metadata;
  if (checkResourceAllowed({ requestedResource: resourceUrlFromServerUrl(serverUrl), configuredResource: resource }))
    return found;
  throw new Error(`its metadata is that of another resource, ${resource}`);
}

function chooseServer(named: readonly string[], issuer: string): string | undefined {
  return (issuer === "" ? undefined : named.find((one) => isSameIssuer(one, issuer))) ?? named[0];
}

function isSameIssuer(one: string, other: string): boolean {
  const bare = (text: string) => text.replace(/\/$/, "");
  return bare(one) === bare(other);
}

function requireUsable(metadata: Metadata): void {
  const { authorization_endpoint, token_endpoint, registration_endpoint } = metadata;
  for (const endpoint of [authorization_endpoint, token_endpoint, registration_endpoint, revocationEndpoint(metadata)])
    if (endpoint) requireSafe(new URL(endpoint));
}

export function revocationEndpoint(metadata: object | undefined): string | undefined {
  const endpoint = metadata && "revocation_endpoint" in metadata && metadata.revocation_endpoint;
  return typeof endpoint === "string" ? endpoint : undefined;
}

/** A code that is stolen on its way is worth nothing with PKCE alone. */
export function requirePkce({ metadata }: Origin): void {
  if (metadata === undefined || metadata.code_challenge_methods_supported?.includes("S256")) return;
  throw new Error(
    `the authorization server ${metadata.issuer} does not say that it takes PKCE with S256, which is required`,
  );
}

function keptOf(metadata: Metadata): Metadata {
  const kept = Object.entries(metadata).filter(([name]) => KEPT.includes(name));
  const { scopes_supported } = metadata;
  const offline = scopes_supported?.includes("offline_access") && { scopes_supported: ["offline_access"] };
  // of the fields that the SDK demands, none is left out
  return { ...(Object.fromEntries(kept) as Metadata), ...offline };
}
