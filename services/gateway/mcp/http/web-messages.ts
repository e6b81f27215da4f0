import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { headerOf, urlOf } from "#runtime/rpc/http/connect/exchange.ts";
import type { HttpRequest, HttpResponse } from "#runtime/rpc/http/messages.ts";

/** The head of a request as the SDK's transports take it, which read no body: it is given to them parsed. */
export function webRequestOf(request: HttpRequest, signal: AbortSignal): Request {
  return new Request(urlOf(request), { method: request.method ?? "GET", headers: headerOf(request), signal });
}

/** Belongs to the connection, which HTTP/2 does not let anybody name. */
const ofConnection = new Set(["connection", "keep-alive", "transfer-encoding"]);

/** Resolves when all is written, or the client has left, which the body is told. */
export async function answerWeb(response: HttpResponse, answer: Response): Promise<void> {
  for (const [name, value] of answer.headers) if (!ofConnection.has(name)) response.setHeader(name, value);
  response.writeHead(answer.status);
  const { body } = answer;
  if (body === null) {
    response.end();
    return;
  }
  if ("flushHeaders" in response) response.flushHeaders(); // a stream may have nothing to say for long
  try {
    await pipeline(Readable.fromWeb(body), response);
  } catch {
    response.destroy(); // the client has left
  }
}

export function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") ?? false;
}
