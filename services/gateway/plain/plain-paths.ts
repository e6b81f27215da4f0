import type { HttpRequest, HttpResponse, RequestListener } from "#runtime/rpc/http/request-listener.ts";
import type { Authenticate } from "../access/authentication.ts";

export interface PlainPathsOptions {
  authenticate: Authenticate;
  metricsText: () => Promise<string>;
  /** Gives whether it answers the request. */
  toolCalls: (request: HttpRequest, response: HttpResponse) => boolean;
}

/** What is no RPC: `/metrics` for Prometheus, `/healthz` for probes, calls of external tools, and a 404 that says what there is. */
export function createPlainPaths({ authenticate, metricsText, toolCalls }: PlainPathsOptions): RequestListener {
  return (request, response) => {
    const path = (request.url ?? "/").split("?", 1)[0];
    if (path === "/healthz") return answer(response, 200, "text/plain", "ok\n");
    if (toolCalls(request, response)) return;
    if (path !== "/metrics") return answer(response, 404, "application/json", notFound(request));
    if (authenticate(headersOf(request)) === undefined) {
      return answer(response, 401, "application/json", jsonError("unauthenticated", "this gateway wants a key"));
    }
    metricsText().then(
      (text) => answer(response, 200, "text/plain; version=0.0.4", text),
      (error: unknown) => answer(response, 500, "application/json", jsonError("internal", String(error))),
    );
  };
}

function notFound(request: HttpRequest): string {
  const text = `there is nothing at ${request.method} ${request.url}; calls go to POST /<package.Service>/<Method>`;
  return jsonError("not_found", text);
}

function jsonError(code: string, message: string): string {
  return JSON.stringify({ code, message });
}

function headersOf(request: HttpRequest): Headers {
  const headers = new Headers();
  for (const name of ["authorization", "x-api-key"]) {
    const value = request.headers[name];
    if (typeof value === "string") headers.set(name, value);
  }
  return headers;
}

function answer(response: HttpResponse, status: number, type: string, body: string): void {
  response.statusCode = status;
  response.setHeader("content-type", type);
  response.end(body);
}
