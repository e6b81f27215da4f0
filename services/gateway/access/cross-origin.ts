import { cors as connectCors } from "@connectrpc/connect";
import { refuse } from "#runtime/failure/failure.ts";
import type { HttpRequest, HttpResponse } from "#runtime/rpc/http/messages.ts";

/** What clients in pages read of an answer: those of RPC, of MCP, and of OpenAI's. */
const EXPOSED = [
  ...connectCors.exposedHeaders,
  ...["mcp-session-id", "www-authenticate", "retry-after", "x-should-retry", "x-request-id"],
].join(", ");

/**
 * Lets pages of the given origins call: answers their preflight requests (and says so with `true`), and marks what they
 * may read of every other answer.
 */
export function createCrossOrigin(
  origins: readonly string[],
): (request: HttpRequest, response: HttpResponse) => boolean {
  const isAllowed = (origin: string) => origins.includes("*") || origins.includes(origin);
  return (request, response) => {
    const origin = request.headers.origin;
    if (origin === undefined || !isAllowed(origin)) return false;
    response.setHeader("access-control-allow-origin", origin);
    response.setHeader("vary", "origin, access-control-request-headers");
    response.setHeader("access-control-expose-headers", EXPOSED);
    if (request.method !== "OPTIONS") return false;
    const asked = request.headers["access-control-request-headers"]; // clients of each kind have their own
    response.setHeader("access-control-allow-methods", [...connectCors.allowedMethods, "DELETE"].join(", "));
    if (asked !== undefined) response.setHeader("access-control-allow-headers", asked);
    response.setHeader("access-control-max-age", "7200");
    response.writeHead(204);
    response.end();
    return true;
  };
}

interface Asked {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
}

/**
 * A page of the web may ask for a client that knows no better: only those whose origin is allowed, or the gateway's own, may. Browsers
 * leave the origin out of images, links and forms that send GET; `Sec-Fetch-Site` tells then that another page asks.
 */
export function requireOrigin({ request, response }: Asked): void {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (origin === undefined && site !== "cross-site" && site !== "same-site") return;
  if (response.getHeader("access-control-allow-origin") !== undefined) return;
  const host = "authority" in request ? request.authority : request.headers.host;
  if (origin !== undefined && URL.canParse(origin) && new URL(origin).host === host) return;
  const text = `pages of ${origin ?? "another site"} may not call: name the origin in TOOLBUS_CORS_ORIGINS if they should`;
  refuse("permission_denied", text, { reason: "HOST_NOT_ALLOWED" });
}
