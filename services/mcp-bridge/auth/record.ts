import { createHash } from "node:crypto";
import type { JsonValue } from "@bufbuild/protobuf";
import type { AuthorizationServerMetadata, OAuthClientInformationMixed } from "@modelcontextprotocol/client";
import { type McpServer, Share } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";

/** What is kept of the login of one owner at one server. It is sealed where it is stored. */
export interface LoginRecord {
  /** As it is declared, in the contract's JSON: secrets are named in it, and not resolved. */
  server: JsonValue;
  /** By which sources asked, the last one first. */
  names?: string[];
  /** Whether a run brought it. */
  isOfRun?: boolean;
  /** What the server asked for last and has not got. */
  wanted?: Challenge | undefined;
  pending?: PendingLogin | undefined;
  grant?: Grant | undefined;
  /** Names the attempt of one instance to renew the grant. */
  renewing?: string | undefined;
}

export interface Challenge {
  scope?: string | undefined;
  resourceMetadataUrl?: string | undefined;
  /** Where it was when there was a login. */
  knownMetadataUrl?: string | undefined;
  atMs: number;
}

/** Where tokens come from, what they are for, and as whom they are asked for. */
export interface Origin {
  authorizationServer: string;
  /** Absent where the server publishes none, which only servers of revision 2025-03-26 may. */
  metadata?: AuthorizationServerMetadata | undefined;
  resource: string;
  /** Where the server said that its metadata is; absent where it is at a well-known place. */
  resourceMetadataUrl?: string | undefined;
  /** Absent where the entry of the server says it. */
  client?: OAuthClientInformationMixed | undefined;
  redirectUri?: string | undefined;
}

export interface PendingLogin {
  origin: Origin;
  /** Who began it, and alone may complete it. */
  principal: string;
  stateHash: string;
  codeVerifier: string;
  scope?: string | undefined;
  expiresAtMs: number;
}

export interface Grant {
  origin: Origin;
  accessToken: string;
  refreshToken?: string | undefined;
  scope?: string | undefined;
  /** When it is renewed unasked; absent where the authorization server does not say how long it holds. */
  renewAtMs?: number | undefined;
}

/** Whose tokens a connection uses: those of the session's principal, or, of a shared server, those that all have in common. */
export type Owner = `principal:${string}` | "all";

/** Undefined for a connection of nobody: outside of a session there is no principal. */
export function ownerOf(server: McpServer, principal: string): Owner | undefined {
  if (server.share === Share.GLOBAL || server.share === Share.AGENT) return "all";
  return principal === "" ? undefined : `principal:${principal}`;
}

/** A token is for one URL: a server that moves asks anew. */
export function recordKey(owner: Owner, server: McpServer): string {
  const { auth } = server;
  const audience = auth?.audience ? [auth.audience] : [];
  const place = [partsOfTransport(server).url, auth?.clientId ?? "", auth?.issuer ?? "", auth?.grant ?? 0, ...audience];
  return `${digest(owner)}.${digest(JSON.stringify(place))}`;
}

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
