import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

/** A span as a collector of OpenTelemetry is told of it. */
export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace. */
  readonly parentSpanId: string;
  /** 1 is work inside of a process, 2 a server, 3 a client. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code?: number; readonly message?: string };
  readonly hasFailed: boolean;
}

export interface Collector extends AsyncDisposable {
  /** The base URL, as `OTEL_EXPORTER_OTLP_ENDPOINT` wants it. */
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
}

interface ExportedAttribute {
  key: string;
  value: { stringValue?: string; intValue?: number; doubleValue?: number; boolValue?: boolean; arrayValue?: object };
}

interface ExportedSpan extends Pick<CollectedSpan, "name" | "traceId" | "spanId" | "kind"> {
  parentSpanId?: string;
  attributes?: ExportedAttribute[];
  status?: CollectedSpan["status"];
}

interface Export {
  resourceSpans?: {
    resource?: { attributes?: ExportedAttribute[] };
    scopeSpans?: { spans?: ExportedSpan[] }[];
  }[];
}

/** Takes spans over OTLP/HTTP in JSON, and keeps them. */
export async function openCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const server = createServer(async (request, response) => {
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
    const body = Buffer.concat(chunks);
    const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
    if (request.url === "/v1/traces") spans.push(...spansFrom(JSON.parse(text.toString()) as Export));
    response.setHeader("content-type", "application/json");
    response.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function spansFrom({ resourceSpans = [] }: Export): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) => {
    const service = resource?.attributes?.find(({ key }) => key === "service.name")?.value.stringValue ?? "";
    return scopeSpans.flatMap(({ spans = [] }) =>
      spans.map(({ name, traceId, spanId, kind, parentSpanId = "", attributes = [], status = {} }) => ({
        ...{ service, name, traceId, spanId, kind, parentSpanId, status },
        attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
        hasFailed: status.code === 2,
      })),
    );
  });
}
