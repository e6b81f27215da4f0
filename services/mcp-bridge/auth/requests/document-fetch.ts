import type { FetchLike } from "@modelcontextprotocol/client";
import { createAddressGuard } from "#runtime/http/address-guard.ts";
import { isLoopback } from "#runtime/http/loopback.ts";
import { isObject, jsonFrom } from "#runtime/schema/json-object.ts";
import { openOriginFetch } from "../../transport/http/origin-fetch.ts";

/** No metadata, registration or answer with tokens is longer. */
const MAX_BYTES = 256 * 1024;
/** FETCH4 */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403]);

/**
 * Requests of OAuth to the places that documents of servers name, which may be meant to mislead:
 *
 * FETCH1  `https`, or `http` on loopback or at the MCP server's own origin, which its entry names.
 * FETCH2  At public addresses and what the operator allows; for a server that no run has brought, also at its own host and port, and on
 *     loopback if it is there itself.
 * FETCH3  256 KiB each, all together within the time of what asks; redirects only within an origin.
 * FETCH4  A POST is answered by what was asked for, or by a refusal of OAuth (400, 401, 403 at some). Any other status is a fault of the
 *     moment, whatever its body says: many a framework puts a member `error` into each.
 * FETCH5  A member that is null is absent, as many a framework writes it; the SDK (2.4.0) takes such an answer for a wrong one.
 */
export function openDocumentFetch(
  serverUrl: URL,
  { allow, isOfRun }: { allow: readonly string[]; isOfRun: boolean },
  over: AbortSignal,
): AsyncDisposable & { readonly fetch: FetchLike } {
  const own = createAddressGuard(isOfRun ? allow : [...allow, ...ownAddresses(serverUrl)]);
  const origin = openOriginFetch({ guard: own, maxMessageBytes: MAX_BYTES, limitName: "" }, () => {});
  return {
    async fetch(input, init = {}) {
      const url = requireSafe(new URL(input), serverUrl);
      const response = await origin.request(url, { ...init, signal: over });
      if (response.ok) return withoutNulls(response);
      if (init.method !== "POST" || REFUSALS.has(response.status)) return response;
      await response.body?.cancel();
      throw new Error(`${url.origin} answers with HTTP ${response.status}`);
    },
    [Symbol.asyncDispose]: () => origin[Symbol.asyncDispose](),
  };
}

/** FETCH5 */
async function withoutNulls(response: Response): Promise<Response> {
  const text = await response.text();
  const document = jsonFrom(text);
  const { status, headers } = response;
  if (!isObject(document)) return new Response(text || null, { status, headers }); // a 204 has no body
  return Response.json(Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null)), { status });
}

/** FETCH1. Throws for any other place. */
export function requireSafe(url: URL, serverUrl?: URL): URL {
  const isOwn = url.origin === serverUrl?.origin;
  if (url.protocol === "https:" || (url.protocol === "http:" && (isOwn || isLoopback(url.hostname)))) return url;
  throw new Error(`${url.origin === "null" ? url.protocol : url.origin} is named, and is neither https nor loopback`);
}

/** FETCH2 */
function ownAddresses({ hostname, port, protocol }: URL): string[] {
  const own = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  return isLoopback(hostname) ? [own, "127.0.0.0/8", "::1/128"] : [own];
}
