import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "../../testing/servers/http-server.ts";
import { openSessionServer } from "../../testing/servers/session-server.ts";
import type { AuthorizationServer } from "./authorization-server.ts";

export interface ProtectedServer extends AsyncDisposable {
  readonly url: string;
  readonly origin: string;
  /** Authorization headers that came, in order. */
  readonly authorizations: (string | undefined)[];
  /** How its metadata and its refusals differ from the plain case. */
  variant: Variant;
}

export interface Variant {
  /** Where the metadata is, as a path; absent nowhere. */
  metadataPath?: string | undefined;
  /** What the refusal says; `METADATA` stands for the URL of the metadata. */
  challenge?: string | undefined;
  metadata?: object;
  /** Answers to documents that are asked for, instead of its own. */
  document?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** A scope that calls of tools need. */
  callScope?: string;
  /** A refusal for want of it does not say so. */
  namesNoScope?: boolean;
  /** A token that has it is refused all the same. */
  isNeverEnough?: boolean;
}

export const plain: Variant = {
  metadataPath: "/.well-known/oauth-protected-resource/mcp",
  challenge: 'Bearer resource_metadata="METADATA"',
};

/** An MCP server of the SDK, behind a check of tokens: they are asked of the authorization server that gave them. */
export async function openProtectedServer(
  authorizationServer: AuthorizationServer,
  variant: Variant = plain,
): Promise<ProtectedServer> {
  const inner = await openSessionServer();
  const own = { authorizations: [] as (string | undefined)[], variant };
  const server = await listen(async (request, response) => {
    const path = request.url?.split("?")[0] ?? "";
    if (own.variant.document?.(request, response)) return;
    if (path === own.variant.metadataPath) return json(response, metadataOf());
    if (!path.startsWith("/mcp")) return response.writeHead(404).end();
    own.authorizations.push(request.headers.authorization);
    const body = await bodyOf(request);
    const refusal = await refusalOf(request, body);
    if (refusal) return response.writeHead(refusal.status, refusal.headers).end();
    await forward(request, response, body);
  });
  const origin = `http://127.0.0.1:${server.port}`;

  const metadataOf = () => ({
    resource: server.url,
    authorization_servers: [authorizationServer.issuer],
    scopes_supported: ["read"],
    ...own.variant.metadata,
  });

  async function refusalOf({ headers: { authorization = "" } }: IncomingMessage, body: string) {
    const { challenge = "", metadataPath = "", callScope, namesNoScope, isNeverEnough } = own.variant;
    const token = await authorizationServer.provider.AccessToken.find(authorization.slice("Bearer ".length));
    const ofClient = await authorizationServer.provider.ClientCredentials.find(authorization.slice("Bearer ".length));
    const found = token ?? ofClient;
    const text = challenge.replace("METADATA", origin + metadataPath);
    const headers = challenge === "" ? {} : { "www-authenticate": text };
    if (found?.aud !== server.url) return { status: 401, headers };
    if (callScope === undefined || !body.includes('"tools/call"')) return undefined;
    if (found.scope?.split(" ").includes(callScope) && !isNeverEnough) return undefined;
    const named = namesNoScope ? "" : `, scope="${callScope}"`;
    return { status: 403, headers: { "www-authenticate": `Bearer error="insufficient_scope"${named}` } };
  }

  async function forward(request: IncomingMessage, response: ServerResponse, body: string) {
    const { host: _, connection: _c, "content-length": _l, ...headers } = request.headers;
    try {
      const answer = await fetch(inner.url, {
        method: request.method ?? "GET",
        headers: headers as Record<string, string>,
        ...(body !== "" && { body }),
      });
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      const gone = () => void answer.body?.cancel().catch(() => {});
      response.on("close", gone);
      for await (const chunk of answer.body ?? []) response.write(chunk);
    } catch {} // who asked is gone, or the server behind
    response.end();
  }

  return Object.assign(own, {
    url: server.url,
    origin,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await inner[Symbol.asyncDispose]();
    },
  });
}

function json(response: ServerResponse, value: object): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
