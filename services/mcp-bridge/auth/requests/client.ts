import { createPrivateKey } from "node:crypto";
import {
  type AddClientAuthentication,
  createPrivateKeyJwtAuth,
  type FetchLike,
  isStrictScopeSuperset,
  type OAuthClientInformationFull,
  type OAuthClientInformationMixed,
  registerClient,
  selectClientAuthMethod,
} from "@modelcontextprotocol/client";
import type { ClientAuth } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { clientDocument } from "#runtime/config/public-url.ts";
import type { Origin } from "../record.ts";
import type { Discovered } from "./discovery.ts";

/** Who the suite is to an authorization server. */
export interface Client {
  readonly information: OAuthClientInformationMixed;
  readonly addClientAuthentication: AddClientAuthentication;
}

/** What the entry of the server says, with its secrets resolved, else what was found out. */
export async function clientOf({ client }: Origin, auth: ClientAuth | undefined): Promise<Client> {
  if (!auth?.clientId) {
    if (client === undefined) throw new Error("no client is known there");
    return clientFrom(client);
  }
  const { clientId, clientSecret, privateKey } = auth;
  if (privateKey === "")
    return clientFrom({ client_id: clientId, ...(clientSecret !== "" && { client_secret: clientSecret }) });
  const key = createPrivateKey(privateKey).export({ format: "jwk" });
  const options = { issuer: clientId, subject: clientId, privateKey: { ...key }, alg: algorithmOf(key) };
  return { information: { client_id: clientId }, addClientAuthentication: createPrivateKeyJwtAuth(options) };
}

/** As the SDK (2.4.0) does it, which knows no requests but those for tokens and leaves parts of HTTP Basic as they are (RFC 6749, 2.3.1). */
function clientFrom(information: OAuthClientInformationMixed): Client {
  const { client_id, client_secret = "" } = information;
  return {
    information,
    addClientAuthentication(headers, body, _, metadata) {
      const method = selectClientAuthMethod(information, metadata?.token_endpoint_auth_methods_supported ?? []);
      if (method === "client_secret_basic") {
        const basic = `${partOfBasic(client_id).replaceAll(":", "%3A")}:${partOfBasic(client_secret)}`;
        return headers.set("authorization", `Basic ${btoa(basic)}`);
      }
      body.set("client_id", client_id);
      if (method === "client_secret_post") body.set("client_secret", client_secret);
    },
  };
}

/** What means the same to servers that do not decode it, as far as possible. */
function partOfBasic(text: string): string {
  return text.replace(/[^\x21-\x7e]|[%+]/gu, encodeURIComponent);
}

function algorithmOf({ kty, crv }: { kty?: string; crv?: string }): string {
  if (kty === "RSA") return "RS256";
  return { "P-256": "ES256", "P-384": "ES384", "P-521": "ES512" }[crv ?? ""] ?? "EdDSA";
}

/** How clients are found out: by a document that the suite publishes, or by registering. */
export interface FindingClient {
  redirectUri: string;
  scope: string | undefined;
  /** What was registered before, perhaps elsewhere. */
  known: readonly Origin[];
  /** Where the suite's Client ID Metadata Document is; absent where it has no public URL. */
  metadataUrl: string | undefined;
  fetch: FetchLike;
}

/** CIMD goes before registration, which leaves a client behind at each authorization server. */
export async function findClient(origin: Discovered, finding: FindingClient): Promise<OAuthClientInformationMixed> {
  const { metadata, authorizationServer } = origin;
  const { redirectUri, scope, known, metadataUrl, fetch } = finding;
  if (metadata?.client_id_metadata_document_supported && metadataUrl !== undefined) return { client_id: metadataUrl };
  const registered = known.find(
    (one) => one.client && one.authorizationServer === authorizationServer && isFor(one, redirectUri, scope),
  );
  if (registered?.client) return registered.client;
  if (metadata && !metadata.registration_endpoint)
    throw new Error(
      `${metadata.issuer} registers no clients by itself: register one there, and name it in the server's entry (auth.clientId)`,
    );
  const clientMetadata = clientDocument([redirectUri]);
  const registration = { clientMetadata, fetchFn: fetch, ...(metadata && { metadata }), ...(scope && { scope }) };
  return registerClient(authorizationServer, registration);
}

/** A client that was registered for some scopes gets no others. */
function isFor({ client, redirectUri }: Origin, asked: string, scope = ""): boolean {
  const { client_secret_expires_at: expires = 0, scope: registered } = client as Partial<OAuthClientInformationFull>;
  const isWide = registered === undefined || !isStrictScopeSuperset(scope, registered);
  return redirectUri === asked && isWide && (expires === 0 || expires * 1_000 > Date.now());
}
