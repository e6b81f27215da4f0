import { connectError } from "#runtime/failure/connect.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { HttpRequest, HttpResponse, RequestTaker } from "#runtime/rpc/http/messages.ts";
import { answerRefusal } from "#runtime/rpc/http/refusal.ts";
import type { Authenticate } from "../access/authentication.ts";

export interface PlainPathsOptions {
  authenticate: Authenticate;
  metricsText: () => Promise<string>;
  toolCalls: RequestTaker;
}

/** What is no RPC: `/metrics` for Prometheus, `/healthz` for probes, and calls of external tools. */
export function createPlainPaths({ authenticate, metricsText, toolCalls }: PlainPathsOptions): RequestTaker {
  return (request, response) => {
    const path = (request.url ?? "/").split("?", 1)[0];
    if (path === "/healthz") answer(response, "text/plain", "ok\n");
    else if (path !== "/metrics") return toolCalls(request, response);
    else if (authenticate(headersOf(request)) === undefined) {
      const error = connectError("unauthenticated", "this gateway wants a key", { reason: "CREDENTIALS_INVALID" });
      answerRefusal(request, response, { status: 401, error });
    } else {
      metricsText().then(
        (text) => answer(response, "text/plain; version=0.0.4", text),
        (cause: unknown) => {
          const error = connectError("internal", `the metrics cannot be read: ${messageFromUnknown(cause)}`, {
            reason: "INTERNAL",
            cause,
          });
          answerRefusal(request, response, { status: 500, error });
        },
      );
    }
    return true;
  };
}

function headersOf(request: HttpRequest): Headers {
  const headers = new Headers();
  for (const name of ["authorization", "x-api-key"]) {
    const value = request.headers[name];
    if (typeof value === "string") headers.set(name, value);
  }
  return headers;
}

function answer(response: HttpResponse, type: string, body: string): void {
  response.setHeader("content-type", type);
  response.end(body);
}
