import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "../../testing/servers/http-server.ts";
import type { AuthorizationServer } from "./authorization-server.ts";
import { openProtectedServer, type ProtectedServer, plain } from "./protected-server.ts";

/** How an authorization server differs from one that does as it should. */
export interface Misbehaviour {
  metadata?: object;
  /** Of what a client that registers is told. */
  client?: object;
  /** Of the tokens that are given. */
  tokens?: object;
  /** Answers a request to the token endpoint in place of tokens; undefined gives them. */
  refusal?: { status: number; body: object } | undefined;
}

export interface MisbehavingServer extends AsyncDisposable {
  /** An MCP server that takes its tokens. */
  readonly mcp: ProtectedServer;
  readonly issuer: string;
  /** Bodies of requests to the token endpoint. */
  readonly tokenRequests: URLSearchParams[];
  readonly revocations: { form: URLSearchParams; authorization: string | undefined }[];
  /** Access tokens that hold. */
  readonly valid: Set<string>;
  misbehaviour: Misbehaviour;
}

/** An authorization server that does what its library would not, and the MCP server that it guards. Any code is good. */
export async function openMisbehavingServer(misbehaviour: Misbehaviour = {}): Promise<MisbehavingServer> {
  const stack = new AsyncDisposableStack();
  const own = {
    misbehaviour,
    tokenRequests: [] as URLSearchParams[],
    revocations: [] as MisbehavingServer["revocations"],
    valid: new Set<string>(),
  };
  let issuer = "";
  let count = 0;
  const tokens = () => {
    count += 1;
    own.valid.add(`access-${count}`);
    const pair = { access_token: `access-${count}`, refresh_token: `refresh-${count}` };
    return { ...pair, token_type: "Bearer", expires_in: 600, ...own.misbehaviour.tokens };
  };
  const server = stack.use(
    await listen(async (request, response) => {
      const text = await textOf(request);
      const form = new URLSearchParams(text);
      switch (request.url) {
        case "/.well-known/oauth-authorization-server":
          return json(response, { ...metadataOf(issuer), ...own.misbehaviour.metadata });
        case "/register":
          count += 1;
          return json(response, { ...JSON.parse(text), client_id: `client-${count}`, ...own.misbehaviour.client }, 201);
        case "/revoke":
          own.revocations.push({ form, authorization: request.headers.authorization });
          return json(response, {});
        case "/token": {
          own.tokenRequests.push(form);
          const { refusal } = own.misbehaviour;
          return refusal ? json(response, refusal.body, refusal.status) : json(response, tokens());
        }
        default:
          return response.writeHead(404).end();
      }
    }),
  );
  issuer = `http://127.0.0.1:${server.port}`;
  const find = async (token: string) => (own.valid.has(token) ? { aud: mcp.url } : undefined);
  const provider = { AccessToken: { find }, ClientCredentials: { find: async () => undefined } };
  const mcp: ProtectedServer = stack.use(
    await openProtectedServer({ issuer, provider } as unknown as AuthorizationServer, plain),
  );
  return Object.assign(own, { mcp, issuer, [Symbol.asyncDispose]: () => stack.disposeAsync() });
}

function metadataOf(issuer: string): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    revocation_endpoint: `${issuer}/revoke`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
  };
}

function json(response: ServerResponse, value: object, status = 200): void {
  const body = Buffer.isBuffer(value) ? value : JSON.stringify(value);
  response.writeHead(status, { "content-type": "application/json" }).end(body);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
