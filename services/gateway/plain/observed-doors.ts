import { SpanKind } from "@opentelemetry/api";
import type { FailureCode } from "#runtime/failure/failure.ts";
import { type HttpResponse, type PathTaker, sinkOf } from "#runtime/rpc/http/messages.ts";
import { SECONDS } from "#runtime/telemetry/rpc-metrics.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { traceFromFields } from "#runtime/telemetry/trace-context.ts";
import { type Door, patternOfRoute } from "./door.ts";

const STATUS = "http.response.status_code";
const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS"]);

const faults = new WeakMap<HttpResponse, string>();

/** What is answered tells a fault of the suite, in whose form the status may be 200. */
export function noteFault(response: HttpResponse, code: FailureCode): void {
  faults.set(response, code);
}

/** Requests that are no RPCs are seen as those are: a span in the client's trace, and their time. */
export function observedDoors(
  doors: readonly Door[],
  { inSpan, meter }: Pick<Telemetry, "inSpan" | "meter">,
): PathTaker {
  const routeOfUrl = routeReader(doors);
  const taker: PathTaker = (...exchange) => doors.some(({ takes }) => takes(...exchange));
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
        const fault = faults.get(response) ?? (status >= 500 ? String(status) : undefined);
        span.set({ [STATUS]: status });
        if (fault !== undefined) span.fail(fault);
        const told = { ...of, [STATUS]: status, ...(fault !== undefined && { "error.type": fault }) };
        duration.record((performance.now() - startedAt) / 1_000, told);
      },
      traceFromFields(request.headers),
    );
    answered.catch(() => {}); // what the taker throws is its own fault, and told by it
    return isTaken;
  };
}

/** Reads the route of a URL; undefined for what is none of the doors: pages, probes, and paths that lead nowhere. */
function routeReader(doors: readonly Door[]): (url: string) => string | undefined {
  const routes = doors.flatMap((door) => door.routes.map((route) => ({ route, pattern: patternOfRoute(route) })));
  return (url) => {
    const path = url.split("?", 1)[0]?.replace(/(?<=.)\/$/, "") ?? "";
    return routes.find(({ pattern }) => pattern.test(path))?.route;
  };
}
