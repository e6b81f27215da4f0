import { randomBytes, timingSafeEqual } from "node:crypto";
import { fromJson, toJson } from "@bufbuild/protobuf";
import { startAuthorization, validateAuthorizationResponseIssuer } from "@modelcontextprotocol/client";
import { AuthGrant, type LoginState, type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { CALLBACK_PATH, CLIENT_PATH, urlBelow } from "#runtime/config/public-url.ts";
import { Failure, refuse, refuseField } from "#runtime/failure/failure.ts";
import { requireOperator } from "#runtime/failure/operator.ts";
import { isLoopback } from "#runtime/http/loopback.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { urlOfServer } from "../transport/url.ts";
import { type AuthorizationParts, askingFor, loginStateOf } from "./authorization.ts";
import { digest, type LoginRecord, type Owner, ownerOf, type PendingLogin, recordKey } from "./record.ts";
import { type KeptRecord, refuseUnkept } from "./records.ts";
import { clientOf, findClient } from "./requests/client.ts";
import { type Discovered, discover, requirePkce } from "./requests/discovery.ts";
import {
  type Asking,
  isUnasked,
  isWord,
  revokeTokens,
  scopeFor,
  textOfFault,
  tokensForCode,
} from "./requests/tokens.ts";

const PENDING_MS = 10 * 60_000;

export interface LoginsParts extends AuthorizationParts {
  applied: { find(name: string): McpServer | undefined };
  /** Where clients reach the gateway, if the suite says so. */
  publicUrl: URL | undefined;
}

/** A login that somebody may have: at which server, and for whom. */
interface Place {
  readonly key: string;
  readonly server: McpServer;
  readonly owner: Owner;
  readonly record: LoginRecord | undefined;
}

/** How principals log in to servers, each for itself, and operators for what is shared. */
export class Logins {
  readonly #parts: LoginsParts;

  constructor(parts: LoginsParts) {
    this.#parts = parts;
  }

  /** What an applied server has from the caller, or from all. */
  stateOf(server: McpServer, { principal = "" }: Caller): LoginState {
    const owner = ownerOf(server, principal);
    return loginStateOf(owner && this.#parts.records.find(recordKey(owner, server)));
  }

  async begin({ server: name, redirectUri }: { server: string; redirectUri: string }, caller: Caller) {
    if (!this.#parts.records.isKept) refuseUnkept();
    this.#requireRedirect(redirectUri);
    const place = this.#placeOf(name, caller);
    if (isUnasked(place.server.auth)) refuseUnasked(name);
    const { origin, scope, information } = await this.#ask(place, (asking) =>
      this.#prepare(place, redirectUri, asking),
    );
    const state = `${place.key}.${randomBytes(32).toString("base64url")}`;
    const { authorizationUrl, codeVerifier } = await startAuthorization(origin.authorizationServer, {
      ...(origin.metadata && { metadata: origin.metadata }),
      clientInformation: information,
      redirectUrl: redirectUri,
      ...(scope !== undefined && { scope }),
      state,
      resource: origin.resource,
    });
    const expiresAtMs = Date.now() + PENDING_MS;
    const { principal = "" } = caller;
    const pending: PendingLogin = { origin, principal, stateHash: digest(state), codeVerifier, scope, expiresAtMs };
    const server = toJson(McpServerSchema, place.server);
    await this.#parts.records.update(place.key, (record) => ({ ...record, server, pending }));
    return { authorizationUrl: authorizationUrl.href, state, expiresAtMs, issuer: authorizationUrl.host };
  }

  async complete(answer: { state: string; code: string; issuer: string; error: string }, caller: Caller) {
    const { pending, ...place } = await this.#take(answer.state, caller);
    const { origin } = pending;
    const issuer = answer.issuer === "" ? undefined : answer.issuer;
    const grant = await this.#ask(
      place,
      async (asking) => {
        validateAuthorizationResponseIssuer({
          iss: issuer,
          expectedIssuer: origin.metadata?.issuer,
          issParameterSupported: origin.metadata?.authorization_response_iss_parameter_supported === true,
        });
        if (answer.code === "")
          throw new Error(`it was refused there${isWord(answer.error) ? `: ${answer.error}` : ""}`);
        return tokensForCode(pending, { code: answer.code, issuer }, asking);
      },
      [answer.code, pending.codeVerifier, origin.client?.client_secret],
    );
    await this.#parts.records.update(place.key, (record) => ({
      ...(record ?? { server: toJson(McpServerSchema, place.server) }),
      grant,
      wanted: undefined,
      renewing: undefined,
    }));
    const isOwn = place.owner.startsWith("principal:");
    return {
      server: place.server.name,
      scopes: grant.scope?.split(" ").filter(Boolean) ?? [],
      principal: isOwn ? pending.principal : "",
    };
  }

  async forget(name: string, caller: Caller): Promise<void> {
    const place = this.#placeOf(name, caller);
    const { principal = "" } = caller;
    if (isUnasked(place.server.auth)) await this.#parts.subjects.forget(principal);
    const { before } = await this.#parts.records.update(place.key, (standing) => {
      if (standing?.grant === undefined && standing?.pending === undefined) return undefined;
      const knownMetadataUrl = standing.grant?.origin.resourceMetadataUrl;
      const wanted = standing.grant ? { knownMetadataUrl, atMs: Date.now() } : standing.wanted;
      return { ...standing, grant: undefined, pending: undefined, wanted };
    });
    const grant = before?.grant;
    if (grant) await this.#ask(place, (asking) => revokeTokens(grant, asking)).catch(() => {}); // it is forgotten here all the same
  }

  async #prepare(place: Place, redirectUri: string, asking: Asking) {
    const { auth } = asking;
    const { record, server } = place;
    const { wanted, grant, pending } = record ?? {};
    const places = {
      named: wanted?.resourceMetadataUrl,
      known: grant?.origin.resourceMetadataUrl ?? wanted?.knownMetadataUrl,
    };
    const options = { ...places, issuer: auth?.issuer ?? "", fetch: asking.fetch };
    const { scopes, ...found }: Discovered = await discover(urlOfServer(server), options);
    requirePkce(found);
    const scope = scopeFor(wanted, grant?.scope, { ...found, scopes }, auth);
    // where a client is known no more, no login comes back to say so
    const isPending = pending !== undefined && pending.expiresAtMs > Date.now();
    const known = [grant?.origin, isPending ? pending.origin : undefined].filter((one) => one !== undefined);
    const finding = { redirectUri, scope, known, metadataUrl: this.#metadataUrl, fetch: asking.fetch };
    const client = auth?.clientId ? undefined : await findClient({ ...found, scopes }, finding);
    const origin = { ...found, redirectUri, ...(client && { client }) };
    return { origin, scope, information: (await clientOf(origin, auth)).information };
  }

  /** The login that was begun with the state, which nobody can complete a second time. */
  async #take(state: string, caller: Caller): Promise<Place & { pending: PendingLogin }> {
    const key = state.slice(0, state.lastIndexOf("."));
    const kept = /^[\w-]+\.[\w-]+$/.test(key) ? await this.#parts.records.read(key) : undefined;
    const pending = kept?.record.pending;
    if (kept === undefined || pending === undefined) return refuseUnknown();
    const isSame = timingSafeEqual(Buffer.from(pending.stateHash), Buffer.from(digest(state)));
    if (!isSame || pending.principal !== (caller.principal ?? "") || pending.expiresAtMs < Date.now())
      return refuseUnknown();
    const { pending: _, ...record } = kept.record;
    if (!(await this.#parts.records.replace(kept, record))) return this.#take(state, caller); // it may be another change
    const server = fromJson(McpServerSchema, record.server);
    const own: Owner = `principal:${pending.principal}`;
    const owner = recordKey(own, server) === key ? own : "all";
    return { key, server, owner, record, pending };
  }

  /** Of servers that have one name, the one that asked last. */
  #placeOf(name: string, caller: Caller): Place {
    const { principal = "" } = caller;
    const recorded = [`principal:${principal}` as const, "all" as const].flatMap((owner) =>
      this.#recorded(owner, name),
    );
    const places = [...this.#applied(name, principal), ...recorded];
    const [place] = places.toSorted((one, other) => askedAtMs(other) - askedAtMs(one));
    if (place === undefined)
      return refuse(
        "not_found",
        `no MCP server ${name} was applied, and none has asked for a token in a session of yours`,
        { reason: "MCP_SERVER_NOT_FOUND", metadata: { server: name } },
      );
    if (!place.owner.startsWith("principal:")) requireOperator(`the login to ${name}, which sessions share,`, caller);
    if (place.server.auth?.grant === AuthGrant.CLIENT_CREDENTIALS) refuseUnasked(name);
    return place;
  }

  #recorded(owner: Owner, name: string): Place[] {
    const serverOf = ({ record }: KeptRecord) => fromJson(McpServerSchema, record.server);
    return this.#parts.records
      .of(owner)
      .filter((kept) => kept.record.names?.includes(name) || serverOf(kept).name === name)
      .map((kept) => ({ ...kept, owner, server: { ...serverOf(kept), name } }));
  }

  #applied(name: string, principal: string): Place[] {
    const server = this.#parts.applied.find(name);
    const owner = server && ownerOf(server, principal);
    if (server === undefined || owner === undefined) return [];
    const key = recordKey(owner, server);
    return [{ key, owner, server, record: this.#parts.records.find(key) }];
  }

  async #ask<T>({ server, record }: Place, ask: (asking: Asking) => Promise<T>, secrets: (string | undefined)[] = []) {
    try {
      return await askingFor(server, { ...this.#parts, isOfRun: record?.isOfRun === true }, ask);
    } catch (error) {
      if (error instanceof Failure) throw error;
      const text = `the login at ${server.name} has failed: ${textOfFault(error, secrets)}`;
      return refuse("failed_precondition", text, { reason: "MCP_LOGIN_FAILED", metadata: { server: server.name } });
    }
  }

  get #metadataUrl(): string | undefined {
    const { publicUrl } = this.#parts;
    return publicUrl?.protocol === "https:" ? urlBelow(publicUrl, CLIENT_PATH) : undefined;
  }

  /** A code goes nowhere but to the machine of who asks for it, or to the gateway. */
  #requireRedirect(redirectUri: string): void {
    const { publicUrl } = this.#parts;
    const url = URL.parse(redirectUri);
    if (publicUrl && redirectUri === urlBelow(publicUrl, CALLBACK_PATH)) return;
    if (url?.protocol === "http:" && isLoopback(url.hostname) && url.username === "" && url.hash === "") return;
    refuseField("redirect_uri", `must be http on loopback, or ${CALLBACK_PATH} of TOOLBUS_PUBLIC_URL`);
  }
}

function askedAtMs({ record }: Place): number {
  return record?.wanted?.atMs ?? 0;
}

function refuseUnasked(server: string): never {
  const text = `${server} takes the client's own credentials, or a person's token in exchange: nobody logs in to it`;
  return refuse("failed_precondition", text, { reason: "MCP_LOGIN_FAILED", metadata: { server } });
}

function refuseUnknown(): never {
  return refuse("not_found", "there is no such login: it was completed, begun anew or has expired; begin it again", {
    reason: "MCP_LOGIN_NOT_FOUND",
  });
}
