import { SpanKind } from "@opentelemetry/api";
import { type PathTaker, sinkOf } from "#runtime/rpc/http/messages.ts";
import { SECONDS } from "#runtime/telemetry/rpc-metrics.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { traceFromFields } from "#runtime/telemetry/trace-context.ts";

/** What is observed, by the words in which it is told: ids and names are left out, so that there are few. */
const ROUTES: readonly (readonly [RegExp, string])[] = [
  [/^\/mcp(\/~(suite|sessions))?$/, ""],
  [/^\/mcp\/[^/]+$/, "/mcp/{agent}"],
  [/^\/v1\/(responses(\/compact)?|chat\/completions|models)$/, ""],
  [/^\/v1\/responses\/[^/]+$/, "/v1/responses/{id}"],
  [/^\/v1\/responses\/[^/]+\/cancel$/, "/v1/responses/{id}/cancel"],
  [/^\/v1\/responses\/[^/]+\/input_items$/, "/v1/responses/{id}/input_items"],
  [/^\/v1\/models\/[^/]+$/, "/v1/models/{id}"],
  [/^\/api\/tool-calls$/, ""],
  [/^\/api\/tool-calls\/[^/]+\/acknowledgement$/, "/api/tool-calls/{id}/acknowledgement"],
  [/^\/api\/runs\/[^/]*\/tool-results$/, "/api/runs/{id}/tool-results"],
];

const STATUS = "http.response.status_code";
const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS"]);

/** Undefined for what is none of the doors: pages, probes, and paths that lead nowhere. */
export function routeOfUrl(url: string): string | undefined {
  const path = url.split("?", 1)[0]?.replace(/(?<=.)\/$/, "") ?? "";
  const found = ROUTES.find(([at]) => at.test(path));
  return found && (found[1] || path);
}

/** Requests that are no RPCs are seen as those are: a span in the client's trace, and their time. */
export function observedDoors(taker: PathTaker, { inSpan, meter }: Pick<Telemetry, "inSpan" | "meter">): PathTaker {
  const duration = meter.createHistogram("http.server.request.duration.seconds", {
    description: "Time from the arrival of a request that is no RPC to the end of its answer",
    advice: { explicitBucketBoundaries: SECONDS },
  });
  return (request, response, body) => {
    const route = routeOfUrl(request.url ?? "/");
    if (route === undefined) return taker(request, response, body);
    const method = METHODS.has(request.method ?? "") ? (request.method ?? "") : "_OTHER";
    const of = { "http.request.method": method, "http.route": route };
    const startedAt = performance.now();
    let isTaken = false;
    const answered = inSpan(
      () => ({ name: `${method} ${route}`, kind: SpanKind.SERVER, attributes: of }),
      async (span) => {
        const { promise: closed, resolve } = Promise.withResolvers<void>();
        sinkOf(response).once("close", resolve);
        isTaken = taker(request, response, body);
        await closed;
        const status = response.statusCode;
        span.set({ [STATUS]: status });
        if (status >= 500) span.fail(String(status));
        duration.record((performance.now() - startedAt) / 1_000, { ...of, [STATUS]: status });
      },
      traceFromFields(request.headers),
    );
    answered.catch(() => {}); // what the taker throws is its own fault, and told by it
    return isTaken;
  };
}
