import { toJson } from "@bufbuild/protobuf";
import { isStrictScopeSuperset } from "@modelcontextprotocol/client";
import { AuthGrant, LoginState, type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Holder } from "../servers/key.ts";
import { LoginNeeded } from "../servers/login-needed.ts";
import { withSecrets } from "../servers/secrets.ts";
import { challengeIn } from "../transport/http/authorized.ts";
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
  isUnasked,
  isWord,
  renewedTokens,
  scopeFor,
  textOfFault,
  tokensInExchange,
  tokensOfClient,
  withoutTokens,
} from "./requests/tokens.ts";
import { SubjectMissing, type Subjects } from "./subjects.ts";

/** All documents and requests of one attempt. */
const ATTEMPT_MS = 30_000;
/** How long a request waits for another token while it has one, and when that is tried again. */
const PATIENCE_MS = 5_000;
/** And while it has none: then it has not begun, which nobody can say once its own time is over. What is obtained later is for the next. */
const REFUSED_MS = 10_000;
const RENEW_AGAIN_MS = 60_000;
const MOST_STRUCK = 8;
/** A run may bring a source by any name. */
const MOST_NAMES = 16;

export interface AuthorizationParts {
  records: LoginRecords;
  renewals: Renewals;
  subjects: Subjects;
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
    return new ServerAuthorization({ ...parts, allow }, { ...of, owner, isOfRun });
  };
}

/** The tokens of one connection: those of its owner, which change under its hands. */
export class ServerAuthorization implements Authorization {
  readonly #parts: AuthorizationParts;
  readonly #server: McpServer;
  readonly #principal: string;
  readonly #isOfRun: boolean;
  readonly #key: string | undefined;
  readonly #struck = new Set<string>();
  #needed: LoginNeeded | undefined;
  #refused: string | undefined;
  /** When the token ends that was to be exchanged last. */
  #triedUntilMs = 0;
  /** Before that, no token is renewed unasked. */
  #renewNextMs = 0;

  constructor(
    parts: AuthorizationParts,
    of: { server: McpServer; principal: string; owner: Owner | undefined; isOfRun: boolean },
  ) {
    this.#parts = parts;
    this.#server = of.server;
    this.#principal = of.principal;
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
    return (this.#needed ?? this.#loginNeeded("it asks for a token")).message;
  }

  async token(): Promise<string | undefined> {
    const grant = this.#grant;
    const renewAtMs = Math.max(grant?.renewAtMs ?? Number.POSITIVE_INFINITY, this.#renewNextMs);
    if (grant === undefined || renewAtMs > Date.now()) return this.#taken(grant);
    const isOver = this.#isExchanged && this.#parts.subjects.endOf(this.#principal) < Date.now();
    if (isOver) return this.#taken(grant);
    const isRenewed = await comesWithin(PATIENCE_MS, this.#renew(grant, undefined)).catch(() => false);
    if (!isRenewed) this.#renewNextMs = Date.now() + RENEW_AGAIN_MS;
    return this.#taken(this.#grant); // the server decides whether it is too late
  }

  async refused(response: Response, token: string | undefined, isAgain: boolean): Promise<void> {
    const { scope, resourceMetadataUrl } = challengeIn(response);
    const challenge = { scope, resourceMetadataUrl: resourceMetadataUrl?.href, atMs: Date.now() };
    const isScope = response.status === 403;
    const grant = this.#grant;
    if (grant !== undefined && grant.accessToken !== token && !isAgain) return;
    const ofScopes = isScope ? whyOfScopes(scope, grant?.scope) : undefined;
    const refusal = this.#whyOf({ isRefused: isAgain || token !== undefined, ofScopes });
    const why = isAgain ? refusal : await this.#obtainOther(grant, challenge, { isScope, refusal });
    if (why === undefined) return;
    if (this.#isOfClient) this.#refuseUnhad("the one that its client was given is refused");
    throw await this.#need(challenge, { why, token, keepsGrant: isScope });
  }

  /** Resolves when there is a grant that was not there at the last refusal, or a token to be exchanged for one. */
  async granted(signal: AbortSignal): Promise<void> {
    const before = this.#refused;
    const { records, subjects } = this.#parts;
    for (;;) {
      using granted = records.changes.next();
      using handed = subjects.changes.next();
      const now = this.#grant?.accessToken;
      if (now !== undefined && now !== before) return;
      if (this.#isExchanged && subjects.endOf(this.#principal) > Math.max(this.#triedUntilMs, Date.now())) return;
      await unlessAborted(Promise.race([granted.happened, handed.happened]), signal);
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

  /** Why there is no other token to try; undefined when there is one. */
  async #obtainOther(
    grant: Grant | undefined,
    challenge: Challenge,
    { isScope, refusal }: { isScope: boolean; refusal: string },
  ): Promise<string | undefined> {
    try {
      if (!isUnasked(this.#server.auth) && (isScope || grant === undefined)) return refusal;
      const renewal = this.#renew(grant, challenge);
      if (await comesWithin(REFUSED_MS, renewal)) return (await renewal) === undefined ? refusal : undefined;
      throw new Error("its authorization server has given none yet");
    } catch (error) {
      if (error instanceof SubjectMissing) return error.message;
      if (isGrantOver(error) && this.#isExchanged)
        return `the exchange is refused there: ${isWord(error.code) ? error.code : "by no code of OAuth"}`;
      if (isGrantOver(error) && !this.#isOfClient) return refusal;
      return this.#refuseUnhad(textOfFault(error, [...this.#struck]));
    }
  }

  #whyOf({ isRefused, ofScopes }: { isRefused: boolean; ofScopes: string | undefined }): string {
    if (this.#key === undefined) return "outside of a session, as here, nobody is logged in";
    if (ofScopes) return ofScopes;
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

  get #isExchanged(): boolean {
    return this.#server.auth?.grant === AuthGrant.TOKEN_EXCHANGE;
  }

  #loginNeeded(why: string): LoginNeeded {
    return new LoginNeeded(this.#server.name, why, this.#isExchanged);
  }

  async #renew(grant: Grant | undefined, challenge: Challenge | undefined): Promise<Grant | undefined> {
    const isNew = isUnasked(this.#server.auth);
    if (this.#key === undefined || (!isNew && grant?.refreshToken === undefined)) return undefined;
    const subject = this.#isExchanged ? await this.#subject() : undefined;
    return this.#parts.renewals.renew(this.#key, grant?.accessToken, {
      absent: () => (isNew ? { server: toJson(McpServerSchema, this.#server) } : undefined),
      obtain: (record) =>
        askingFor(this.#server, { ...this.#parts, isOfRun: this.#isOfRun }, (asking) =>
          this.#obtain(record, { challenge, subject }, asking),
        ),
    });
  }

  async #subject(): Promise<string> {
    const { subjects } = this.#parts;
    this.#triedUntilMs = subjects.endOf(this.#principal); // what comes from now on is tried again
    const token = await subjects.find(this.#principal);
    this.#struck.add(token);
    return token;
  }

  async #obtain(
    record: LoginRecord,
    { challenge, subject }: { challenge: Challenge | undefined; subject: string | undefined },
    asking: Asking,
  ): Promise<Partial<LoginRecord>> {
    const { grant } = record;
    if (!isUnasked(asking.auth) && grant) return { grant: await renewedTokens(grant, asking) };
    const issuer = asking.auth?.issuer ?? "";
    const places = { named: challenge?.resourceMetadataUrl, known: grant?.origin.resourceMetadataUrl };
    const origin = await discover(urlOfServer(this.#server), { ...places, issuer, fetch: asking.fetch });
    const scope = scopeFor(challenge, grant?.scope, origin, asking.auth);
    const obtained =
      subject === undefined
        ? tokensOfClient(origin, scope, asking)
        : tokensInExchange({ origin, subject, scope }, asking);
    return { wanted: undefined, grant: await obtained };
  }

  async #need(
    challenge: Challenge,
    { why, token, keepsGrant }: { why: string; token: string | undefined; keepsGrant: boolean },
  ): Promise<LoginNeeded> {
    const { records } = this.#parts;
    this.#refused = token;
    this.#needed = this.#loginNeeded(why);
    if (this.#key === undefined || !records.isKept) return this.#needed;
    const server = toJson(McpServerSchema, this.#server);
    const { name } = this.#server;
    const decide = (record: LoginRecord | undefined) => {
      const isOther = record?.grant?.accessToken !== token; // somebody has logged in just now
      if (record && isOther && record.grant) return undefined;
      const grant = keepsGrant ? record?.grant : undefined;
      const { wanted } = record ?? {};
      const isSame = wanted?.scope === challenge.scope && wanted?.resourceMetadataUrl === challenge.resourceMetadataUrl;
      const known = record?.names ?? [];
      const isKnown = known.includes(name) && record?.isOfRun === this.#isOfRun;
      if (record && wanted && isSame && isKnown && record.grant === grant) return undefined;
      const names = [...new Set([name, ...known])].slice(0, MOST_NAMES);
      return { ...record, server, names, isOfRun: this.#isOfRun, wanted: challenge, grant };
    };
    await records.update(this.#key, decide).catch((error) => this.#refuseUnhad(messageFromUnknown(error)));
    return this.#needed;
  }
}

function whyOfScopes(asked: string | undefined, granted: string | undefined): string {
  if (asked === undefined) return "it asks for further scopes, and does not say which";
  const isMore = isStrictScopeSuperset(asked, granted);
  return isMore ? "it asks for further scopes" : "it asks for scopes which the login has already";
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
