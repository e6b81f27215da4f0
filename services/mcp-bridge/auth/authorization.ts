import { toJson } from "@bufbuild/protobuf";
import { extractWWWAuthenticateParams, isStrictScopeSuperset } from "@modelcontextprotocol/client";
import { AuthGrant, LoginState, type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Holder } from "../servers/key.ts";
import { LoginNeeded } from "../servers/login-needed.ts";
import { withSecrets } from "../servers/secrets.ts";
import type { Authorization } from "../transport/module.ts";
import { urlOfServer } from "../transport/url.ts";
import { type Challenge, type Grant, type LoginRecord, type Owner, ownerOf, recordKey } from "./record.ts";
import type { LoginRecords } from "./records.ts";
import type { Renewals } from "./renewal.ts";
import { discover } from "./requests/discovery.ts";
import { openDocumentFetch } from "./requests/document-fetch.ts";
import {
  type Asking,
  isGrantOver,
  renewedTokens,
  scopeFor,
  textOfFault,
  tokensOfClient,
  withoutTokens,
} from "./requests/tokens.ts";

/** All documents and requests of one attempt. */
const ATTEMPT_MS = 30_000;
const MOST_STRUCK = 8;

export interface AuthorizationParts {
  records: LoginRecords;
  renewals: Renewals;
  secrets: ReadonlyMap<string, string>;
  /** Addresses that are not public, which documents of servers may name all the same. */
  allow: readonly string[];
}

/** Servers over HTTP may ask for tokens, unless their entry says itself who asks. */
export function createAuthorizations(parts: AuthorizationParts & { runAllow: readonly string[] }) {
  return (of: { server: McpServer; holder: Pick<Holder, "runId">; principal: string }) => {
    const { url, headers } = partsOfTransport(of.server);
    const hasOwn = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
    if (!/^https?:/i.test(url) || hasOwn) return undefined;
    const isOfRun = of.holder.runId !== "";
    const allow = isOfRun ? [...parts.allow, ...parts.runAllow] : parts.allow;
    const owner = ownerOf(of.server, of.principal);
    return new ServerAuthorization({ ...parts, allow }, { server: of.server, owner, isOfRun });
  };
}

/** The tokens of one connection: those of its owner, which change under its hands. */
export class ServerAuthorization implements Authorization {
  readonly #parts: AuthorizationParts;
  readonly #server: McpServer;
  readonly #isOfRun: boolean;
  readonly #key: string | undefined;
  readonly #struck = new Set<string>();
  #needed: LoginNeeded | undefined;
  #refused: string | undefined;

  constructor(parts: AuthorizationParts, of: { server: McpServer; owner: Owner | undefined; isOfRun: boolean }) {
    this.#parts = parts;
    this.#server = of.server;
    this.#isOfRun = of.isOfRun;
    this.#key = of.owner && recordKey(of.owner, of.server);
  }

  get login(): LoginState {
    return loginStateOf(this.#record) || (this.#needed ? LoginState.NEEDED : LoginState.UNSPECIFIED);
  }

  get hasToken(): boolean {
    return this.#grant !== undefined;
  }

  /** What there is to do; empty when nothing is. */
  get need(): string {
    if (this.login !== LoginState.NEEDED) return "";
    return (this.#needed ?? new LoginNeeded(this.#server.name, "it asks for a token")).message;
  }

  async token(): Promise<string | undefined> {
    const grant = this.#grant;
    if (grant === undefined || (grant.renewAtMs ?? Number.POSITIVE_INFINITY) > Date.now()) return this.#taken(grant);
    try {
      return this.#taken((await this.#renew(grant, undefined)) ?? grant);
    } catch {
      return this.#taken(this.#grant); // the server decides whether it is too late
    }
  }

  async refused(response: Response, token: string | undefined, isAgain: boolean): Promise<void> {
    const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(response);
    const challenge = { scope, resourceMetadataUrl: resourceMetadataUrl?.href, atMs: Date.now() };
    const isScope = response.status === 403;
    const grant = this.#grant;
    if (grant !== undefined && grant.accessToken !== token && !isAgain) return;
    const isHad = grant !== undefined && scope !== undefined && !isStrictScopeSuperset(scope, grant.scope);
    const why = this.#whyOf({ isRefused: isAgain || token !== undefined, isScope, isHad });
    if (!isAgain && (await this.#hasOther(grant, challenge, isScope))) return;
    if (this.#isOfClient) this.#refuseUnhad("the one that its client was given is refused");
    throw await this.#need(challenge, { why, token, keepsGrant: isScope });
  }

  /** Resolves when there is a grant that was not there at the last refusal. */
  async granted(signal: AbortSignal): Promise<void> {
    const before = this.#refused;
    for (;;) {
      const { changed } = this.#parts.records;
      const now = this.#grant?.accessToken;
      if (now !== undefined && now !== before) return;
      await unlessAborted(changed, signal);
    }
  }

  /** Without the tokens that were used here. */
  redact(text: string): string {
    return withoutTokens(text, [...this.#struck]);
  }

  get #record(): LoginRecord | undefined {
    return this.#key === undefined ? undefined : this.#parts.records.find(this.#key);
  }

  get #grant(): Grant | undefined {
    return this.#record?.grant;
  }

  #taken(grant: Grant | undefined): string | undefined {
    if (grant === undefined || this.#struck.has(grant.accessToken)) return grant?.accessToken;
    for (const token of [grant.accessToken, grant.refreshToken]) if (token !== undefined) this.#struck.add(token);
    for (const token of [...this.#struck].slice(0, -MOST_STRUCK)) this.#struck.delete(token);
    return grant.accessToken;
  }

  async #hasOther(grant: Grant | undefined, challenge: Challenge, isScope: boolean): Promise<boolean> {
    try {
      if (this.#isOfClient) return (await this.#renew(grant, challenge)) !== undefined;
      return !isScope && grant !== undefined && (await this.#renew(grant, challenge)) !== undefined;
    } catch (error) {
      if (isGrantOver(error) && !this.#isOfClient) return false;
      return this.#refuseUnhad(textOfFault(error, [...this.#struck]));
    }
  }

  #whyOf({ isRefused, isScope, isHad }: { isRefused: boolean; isScope: boolean; isHad: boolean }): string {
    if (this.#key === undefined) return "outside of a session nobody is logged in";
    if (isScope) return isHad ? "it asks for scopes which the login has already" : "it asks for further scopes";
    return isRefused ? "it refuses the token that it was given" : "it asks for a token";
  }

  /** Nobody can log in, or nobody has to: it is tried again. */
  #refuseUnhad(why: string): never {
    const metadata = { server: this.#server.name };
    return refuse("unavailable", `it asks for a token: ${why}`, { reason: "MCP_SERVER_UNAVAILABLE", metadata });
  }

  get #isOfClient(): boolean {
    return this.#server.auth?.grant === AuthGrant.CLIENT_CREDENTIALS;
  }

  async #renew(grant: Grant | undefined, challenge: Challenge | undefined): Promise<Grant | undefined> {
    if (this.#key === undefined || (!this.#isOfClient && grant?.refreshToken === undefined)) return undefined;
    const absent = () => (this.#isOfClient ? { server: toJson(McpServerSchema, this.#server) } : undefined);
    return this.#parts.renewals.renew(this.#key, grant?.accessToken, {
      absent,
      obtain: (record) => this.#asking((asking) => this.#obtain(record, challenge, asking)),
    });
  }

  async #obtain(record: LoginRecord, challenge: Challenge | undefined, asking: Asking): Promise<LoginRecord> {
    const { grant } = record;
    if (!this.#isOfClient && grant) return { ...record, grant: await renewedTokens(grant, asking) };
    const issuer = asking.auth?.issuer ?? "";
    const origin = await discover(urlOfServer(this.#server), { challenge, issuer, fetch: asking.fetch });
    const scope = scopeFor(challenge?.scope, grant?.scope, origin, asking.auth);
    return { ...record, wanted: undefined, grant: await tokensOfClient(origin, scope, asking) };
  }

  async #asking<T>(ask: (asking: Asking) => Promise<T>): Promise<T> {
    return askingFor(this.#server, { ...this.#parts, isOfRun: this.#isOfRun }, ask);
  }

  async #need(
    challenge: Challenge,
    { why, token, keepsGrant }: { why: string; token: string | undefined; keepsGrant: boolean },
  ): Promise<LoginNeeded> {
    const { records } = this.#parts;
    this.#refused = token;
    this.#needed = new LoginNeeded(this.#server.name, why);
    if (this.#key === undefined || !records.isKept) return this.#needed;
    const server = toJson(McpServerSchema, this.#server);
    await records.update(this.#key, (record) => {
      const isOther = record?.grant?.accessToken !== token; // somebody has logged in just now
      if (record && isOther && record.grant) return undefined;
      const grant = keepsGrant ? record?.grant : undefined;
      const { wanted } = record ?? {};
      const isSame = wanted?.scope === challenge.scope && wanted?.resourceMetadataUrl === challenge.resourceMetadataUrl;
      if (record && wanted && isSame && record.grant === grant) return undefined;
      return { ...record, server, isOfRun: this.#isOfRun, wanted: challenge, grant };
    });
    return this.#needed;
  }
}

export function loginStateOf(record: LoginRecord | undefined): LoginState {
  if (record?.wanted) return LoginState.NEEDED;
  return record?.grant ? LoginState.GRANTED : LoginState.UNSPECIFIED;
}

/** Does what needs the authorization server of a server, within the time that all of it may take. */
export async function askingFor<T>(
  server: McpServer,
  given: Pick<AuthorizationParts, "secrets" | "allow"> & { isOfRun: boolean },
  ask: (asking: Asking) => Promise<T>,
): Promise<T> {
  const { auth } = given.isOfRun ? server : withSecrets(server, given.secrets);
  await using documents = openDocumentFetch(urlOfServer(server), given, AbortSignal.timeout(ATTEMPT_MS));
  return await ask({ auth, fetch: documents.fetch });
}
