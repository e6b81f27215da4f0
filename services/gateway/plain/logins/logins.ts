import type { Client } from "@connectrpc/connect";
import type { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { CALLBACK_PATH, CLIENT_PATH, clientDocument, LOGIN_PATH, urlBelow } from "#runtime/config/public-url.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { HttpRequest, HttpResponse, PathTaker } from "#runtime/rpc/http/messages.ts";
import type { Enter } from "../../access/admission.ts";
import { answerJson, type Exchange, optionsFor, textOfBody } from "../exchange.ts";
import { loginPage, type Page, resultPage } from "./login-pages.ts";

/*
 * Logins at MCP servers in a browser, where TOOLBUS_PUBLIC_URL says how browsers reach the gateway:
 *
 *   GET  /oauth/login?server=NAME   a page that asks for the key of who logs in
 *   POST /oauth/login               begins the login for whoever the key stands for, and shows where to agree
 *   GET  /oauth/callback            where the authorization server sends the browser
 *   GET  /client-metadata.json      what the suite is as a client (Client ID Metadata Document)
 *
 * login-1  A login is completed in the browser that it was begun in, which a cookie named by its state shows: nobody can send his own link to
 *     somebody else and get that person's right. Who it is for, mcp-bridge knows by the state, and takes no other's. A browser may have begun
 *     several.
 */

export interface LoginPaths {
  servers: Client<typeof McpServerService>;
  enter: Enter;
  publicUrl: URL | undefined;
  /** Whether nobody needs a key. */
  isOpen: boolean;
}

const MOST_COMPLETING = 16;
const MAX_FORM_BYTES = 16 * 1024;
/** Browsers come back to a port of their own machine, too, and authorization servers take any. */
const LOOPBACK = ["http://127.0.0.1/callback", "http://localhost/callback"];

export function createLoginPaths(paths: LoginPaths): PathTaker {
  const { publicUrl, isOpen } = paths;
  if (publicUrl === undefined) return () => false;
  const redirectUri = urlBelow(publicUrl, CALLBACK_PATH);
  const client = {
    client_id: urlBelow(publicUrl, CLIENT_PATH),
    ...clientDocument([redirectUri, ...LOOPBACK]),
    client_uri: publicUrl.href,
  };
  return (request, response, body) => {
    const url = URL.parse(request.url ?? "/", publicUrl.href);
    if (url === null) return false;
    const asked = `${request.method} ${url.pathname}`;
    if (asked === `GET ${CLIENT_PATH}`) answerJson(response, 200, client);
    else if (asked === `GET ${LOGIN_PATH}`)
      send(response, { page: loginPage(url.searchParams.get("server") ?? "", !isOpen) });
    else if (asked === `POST ${LOGIN_PATH}`)
      reply(response, begin({ ...paths, publicUrl, redirectUri }, { request, response, body }));
    else if (asked === `GET ${CALLBACK_PATH}`)
      reply(response, complete({ ...paths, publicUrl }, request, url.searchParams));
    else return false;
    return true;
  };
}

type Given = LoginPaths & { publicUrl: URL };

interface Answer {
  page: Page;
  cookie?: string;
}

async function begin(paths: Given & { redirectUri: string }, exchange: Exchange): Promise<Answer> {
  const { servers, enter, publicUrl, redirectUri } = paths;
  const { request, response } = exchange;
  const { origin } = request.headers;
  if (origin !== undefined && origin !== publicUrl.origin)
    refuse("invalid_argument", "the form of another page is not taken", { reason: "INVALID_REQUEST" });
  const text = await textOfBody(exchange.body, MAX_FORM_BYTES, `the form is over ${MAX_FORM_BYTES} bytes`);
  const form = new URLSearchParams(text);
  const key = form.get("key");
  if (key) request.headers.authorization = `Bearer ${key}`;
  const caller = await enter(request, response, "calls");
  const server = form.get("server") ?? "";
  const begun = await servers.beginLogin({ server, redirectUri }, optionsFor(caller));
  const { principal = "" } = caller;
  const page = resultPage(`Log in to ${server}`, `You go to ${begun.issuer}, and come back.`, begun.authorizationUrl);
  return { page, cookie: cookieText(publicUrl, begun.state, Buffer.from(principal).toString("base64url"), 600) };
}

/** login-1 */
async function complete({ servers, publicUrl }: Given, request: HttpRequest, query: URLSearchParams): Promise<Answer> {
  const given = (name: string) => query.get(name) ?? "";
  const state = given("state");
  const cookies = (request.headers.cookie ?? "").split(/; */).map((cookie) => cookie.split("=", 2));
  const [, named] = cookies.find(([name]) => name === nameOfCookie(state)) ?? [];
  if (state === "" || named === undefined)
    return refuse("not_found", "no such login was begun in this browser", { reason: "MCP_LOGIN_NOT_FOUND" });
  const principal = Buffer.from(named, "base64url").toString("utf8");
  const options = optionsFor({ ...(principal !== "" && { principal }), isOperator: false });
  const answer = { state, code: given("code"), issuer: given("iss"), error: given("error") };
  const { server } = await inTurn(() => servers.completeLogin(answer, options));
  const page = resultPage(`Logged in to ${server}`, "You can close this page, and go back to toolbus.");
  return { page, cookie: cookieText(publicUrl, state, "", 0) };
}

let completing = 0;

/** Who comes back shows no key: strangers get little of the suite's time. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (completing >= MOST_COMPLETING)
    refuse("resource_exhausted", "too many logins are completed at once: try again", { reason: "SHARE_EXCEEDED" });
  completing += 1;
  try {
    return await work();
  } finally {
    completing -= 1;
  }
}

function nameOfCookie(state: string): string {
  return `toolbus_login~${state}`;
}

function cookieText(publicUrl: URL, state: string, value: string, maxAgeS: number): string {
  const secure = publicUrl.protocol === "https:" ? "; Secure" : "";
  const path = new URL(urlBelow(publicUrl, CALLBACK_PATH)).pathname;
  return `${nameOfCookie(state)}=${value}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure}`;
}

function reply(response: HttpResponse, answer: Promise<Answer>): void {
  answer.then(
    (value) => send(response, value),
    (error: unknown) => {
      const { message, code } = failureFromConnectError(error);
      send(response, {
        page: { ...resultPage("Not logged in", message), status: code === "unauthenticated" ? 401 : 400 },
      });
    },
  );
}

function send(response: HttpResponse, { page: { status, html }, cookie }: Answer): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    ...(cookie !== undefined && { "set-cookie": cookie }),
  });
  response.end(html);
}
