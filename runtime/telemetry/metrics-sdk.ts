import type { Meter } from "@opentelemetry/api";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { type ProcessIdentity, resourceOf } from "./resource.ts";

/** A meter whose readings are rendered when somebody asks; no port of its own is opened. */
export function openMetrics(options: ProcessIdentity): {
  meter: Meter;
  text: () => Promise<string>;
  shutdown: () => Promise<void>;
} {
  const reader = new PrometheusExporter({ preventServerStart: true });
  const provider = new MeterProvider({ resource: resourceOf(options), readers: [reader] });
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  return {
    meter: provider.getMeter("toolbus"),
    async text() {
      const { resourceMetrics } = await reader.collect();
      return serializer.serialize(resourceMetrics);
    },
    shutdown: () => provider.shutdown(),
  };
}
