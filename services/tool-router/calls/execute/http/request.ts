import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { parseExactly } from "#runtime/schema/json/exact-json.ts";
import { currentTrace } from "#runtime/telemetry/trace-context.ts";
import { withSecrets } from "../../../catalogue/secrets.ts";

/** One request of a call: the first, or one that a redirect asks for. */
export interface Outgoing {
  readonly url: URL;
  readonly method: string;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Whether a secret is in a header. Such a request stays with its origin. */
  readonly hasSecrets: boolean;
}

export interface CallArguments {
  /** A JSON object; as a body it goes out byte for byte. */
  readonly json: string;
  /** The call's id, equal for each execution of one call; a tool that knows it does once what it is asked twice (LOOP-14). */
  readonly idempotencyKey: string;
}

/** As much as the most patient of servers takes. */
const MAX_QUERY_LENGTH = 1024 * 1024;

/** The methods whose arguments go into the query; every other method carries them as a JSON body. */
const QUERY_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE"]);

const ACCEPTED = { accept: "application/json, text/*;q=0.9, */*;q=0.1", "accept-encoding": "gzip, br" };

export function requestOfCall(tool: Tool, args: CallArguments, secrets: ReadonlyMap<string, string>): Outgoing {
  const { url: text = "", method: given = "", headers: templates = {} } = tool.execution ?? {};
  const url = new URL(text);
  refuseUnfit(url);
  const method = given || "POST";
  const hasSecrets = Object.values(templates).some((template) => template.includes("${secret:"));
  const headers: Record<string, string> = { ...ACCEPTED, ...currentTrace(), "idempotency-key": args.idempotencyKey };
  for (const [name, template] of Object.entries(templates))
    headers[name.toLowerCase()] = withSecrets(template, secrets);
  if (!QUERY_METHODS.has(method))
    return { url, method, headers: { "content-type": "application/json", ...headers }, body: args.json, hasSecrets };
  appendToQuery(url, args.json);
  return { url, method, headers, body: null, hasSecrets };
}

/** An array is its elements under one name, what is nested deeper is JSON text, and null is left out. */
function appendToQuery(url: URL, json: string): void {
  if (json.length > MAX_QUERY_LENGTH)
    throw new Error(`its arguments are longer than a query may be: ${MAX_QUERY_LENGTH} characters`);
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(Object(parseExactly(json))))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== null) query.append(name, typeof one === "object" ? JSON.stringify(one) : String(one));
  url.search = [url.search.slice(1), query].filter((part) => `${part}` !== "").join("&");
}

function refuseUnfit(url: URL): void {
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new Error(`${url.protocol} URLs are not called`);
  if (url.username !== "" || url.password !== "") throw new Error("the URL holds a user or a password: use a header");
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Whether a response sends the call elsewhere. */
export function isRedirect(status: number, location: unknown): location is string {
  return REDIRECTS.has(status) && typeof location === "string";
}

/** What was meant for one origin only, the configured headers with their secrets, does not travel to another. */
export function redirected(from: Outgoing, status: number, location: string): Outgoing {
  const url = URL.parse(location, from.url.href);
  if (url === null) throw new Error("the redirect leads to no URL");
  refuseUnfit(url);
  if (url.origin !== from.url.origin && from.hasSecrets)
    throw new Error(`it redirects to ${url.origin}, which a request with secrets does not follow`);
  const becomesGet = repeatsAsGet(status, from.method);
  const headers = url.origin === from.url.origin ? from.headers : neutralHeaders(from.headers);
  if (!becomesGet) return { ...from, url, headers };
  const { "content-type": _, ...ofGet } = headers;
  return { ...from, url, method: "GET", headers: ofGet, body: null };
}

/** As browsers do (fetch, HTTP-redirect fetch, step 12). */
export function repeatsAsGet(status: number, method: string): boolean {
  if (status === 303) return method !== "GET" && method !== "HEAD";
  return (status === 301 || status === 302) && method === "POST";
}

function neutralHeaders(headers: Outgoing["headers"]): Record<string, string> {
  const type = headers["content-type"];
  return { ...ACCEPTED, ...(type !== undefined && { "content-type": "application/json" }) };
}
