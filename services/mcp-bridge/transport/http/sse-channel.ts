import type { Channel } from "../channel.ts";
import type { TransportContext } from "../module.ts";
import { authorized } from "./authorized.ts";
import { eventsOf } from "./event-stream.ts";
import { openOriginFetch } from "./origin-fetch.ts";

/**
 * One stream of events, whose first names the place that messages are sent to. The stream is the session: where it ends, the
 * session has ended, and nothing is asked for again here.
 */
export function openSseChannel(
  url: URL,
  headers: Readonly<Record<string, string>>,
  context: TransportContext,
): Channel {
  const closing = new AbortController();
  const { signal } = closing;
  const endpoint = Promise.withResolvers<URL>();
  endpoint.promise.catch(() => {}); // told to whoever sends
  let tooLarge: Error | undefined;
  const origin = openOriginFetch(context, (error) => {
    tooLarge = error;
  });
  const request = authorized(origin.request, context.authorization);

  async function* receive(): AsyncGenerator<string> {
    try {
      const asked = { ...headers, accept: "text/event-stream" };
      const response = await request(url, { headers: asked, signal });
      refuseStatus(response, "GET");
      if (response.body === null) throw new Error(`${url.origin} answered without a stream of events`);
      for await (const { event = "message", data } of eventsOf(response.body)) {
        if (event === "endpoint") endpoint.resolve(placeFrom(data, url));
        else if (event === "message") yield data;
      }
      throw new Error(`${url.origin} ended its stream of events`);
    } catch (error) {
      const cause = tooLarge ?? error;
      endpoint.reject(cause);
      if (signal.aborted) return;
      closing.abort(cause); // what is being sent fails for the same reason
      throw cause;
    }
  }

  return {
    receive,
    async send(text) {
      const body = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: text, signal };
      const response = await request(await endpoint.promise, body);
      await response.body?.cancel(); // the answer comes as an event
      refuseStatus(response, "POST");
    },
    async close() {
      closing.abort();
      await origin[Symbol.asyncDispose]();
    },
  };
}

function refuseStatus({ ok, status, statusText }: Response, method: string): void {
  if (!ok) throw new Error(`${method} was answered with HTTP ${status} ${statusText}`.trimEnd());
}

/** Messages may hold secrets, and headers do: a server names a place of its own. */
function placeFrom(text: string, url: URL): URL {
  const place = URL.parse(text, url.href);
  if (place?.origin === url.origin) return place;
  throw new Error(`${url.origin} wants its messages at ${place?.origin ?? "no URL"}, which is another origin`);
}
