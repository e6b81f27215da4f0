import { Agent, fetch as undiciFetch } from "undici";
import { guardedConnector } from "#runtime/http/guarded-connector.ts";
import type { TransportContext } from "../module.ts";
import { boundedResponse } from "./bounded-body.ts";

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export interface OriginFetch extends AsyncDisposable {
  /** A response whose body is an error when it is too large. */
  request(url: string | URL, init: RequestInit): Promise<Response>;
}

/**
 * Requests to one server, over connections of its own that are never cut for silence: undici ends silent streams after 300 s by
 * default, and here who asks keeps the deadline. A redirect is followed within the server's own origin, and only where the request
 * stays the same: configured headers hold secrets, and so may a message. With `redirect: "error"`, none is.
 */
export function openOriginFetch(
  {
    guard,
    maxMessageBytes,
    limitName = "TOOLBUS_MCP_MAX_MESSAGE_BYTES",
  }: Pick<TransportContext, "guard" | "maxMessageBytes"> & { limitName?: string },
  onTooLarge: (error: Error) => void,
): OriginFetch {
  const connect = guard && guardedConnector(guard);
  const agent = new Agent({ bodyTimeout: 0, headersTimeout: 0, ...(connect && { connect }) });
  return {
    async request(url, init) {
      let target = new URL(url);
      const given = { ...init, dispatcher: agent, redirect: "manual" } as Parameters<typeof undiciFetch>[1];
      for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
        // The global types and those of the package describe the same standard.
        const response = (await undiciFetch(target, given)) as unknown as Response;
        const next = redirectTarget(response, init.method, target);
        if (next === undefined) return boundedResponse(response, { maxBytes: maxMessageBytes, limitName, onTooLarge });
        await response.body?.cancel();
        if (init.redirect === "error") throw new Error(`${target.origin} redirects, which is not followed`);
        target = next;
      }
      throw new Error(`more than ${MAX_REDIRECTS} redirects`);
    },
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

/** Where a response sends the request; undefined for any other response. Throws when it may not go there. */
function redirectTarget({ status, headers }: Response, method = "GET", from: URL): URL | undefined {
  const location = headers.get("location");
  if (!REDIRECTS.has(status) || location === null) return undefined;
  const target = URL.parse(location, from.href);
  if (target?.origin !== from.origin) {
    const place = target === null ? "no URL" : target.origin;
    throw new Error(
      `${from.origin} redirects to ${place}, which is not followed: headers and messages are meant for one origin`,
    );
  }
  const repeatsAsGet = status < 307 && method !== "GET" && method !== "HEAD";
  if (repeatsAsGet)
    throw new Error(`${from.origin} answers with a redirect (HTTP ${status}) that would lose the message`);
  return target;
}
