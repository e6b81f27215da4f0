import { ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import type { Attributes, Meter } from "@opentelemetry/api";
import { getOrInsertComputed } from "../collections/get-or-insert-computed.ts";
import { failureCodeFromCode } from "../failure/code.ts";
import { observedMessages } from "./observed-messages.ts";

/** What is kept of one method: its labels are made once, since they are needed on every call. */
interface MethodRecord {
  labels: Attributes;
  labelsByCode: Map<string, Attributes>;
  inFlight: number;
}

/** The buckets of all times. */
export const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Server side: how long calls take, by service, method and code, and how many are in flight. */
export function createRpcMetrics(meter: Meter): Interceptor {
  const records = new Map<string, MethodRecord>();
  const duration = meter.createHistogram("rpc.server.duration.seconds", {
    description: "Time from the arrival of a call to its answer or the end of its stream",
    advice: { explicitBucketBoundaries: SECONDS },
  });
  const inFlight = meter.createObservableGauge("rpc.server.in_flight", { description: "Calls that are being served" });
  inFlight.addCallback((result) => {
    for (const record of records.values()) result.observe(record.inFlight, record.labels);
  });

  return (next) => async (request) => {
    const record = recordOf(records, request);
    const startedAt = performance.now();
    record.inFlight++;
    const end = (error?: unknown) => {
      record.inFlight--;
      duration.record((performance.now() - startedAt) / 1_000, labelsOf(record, error));
    };
    try {
      const response = await next(request);
      if (response.stream) return { ...response, message: observedMessages(response.message, { end }) };
      end();
      return response;
    } catch (error) {
      end(error);
      throw error;
    }
  };
}

function recordOf(records: Map<string, MethodRecord>, request: UnaryRequest | StreamRequest): MethodRecord {
  const service = request.service.typeName;
  const method = request.method.name;
  const open = () => ({ labels: { service, method }, labelsByCode: new Map(), inFlight: 0 });
  return getOrInsertComputed(records, `${service}/${method}`, open);
}

function labelsOf(record: MethodRecord, error: unknown): Attributes {
  const code = error === undefined ? "ok" : failureCodeFromCode(ConnectError.from(error).code);
  return getOrInsertComputed(record.labelsByCode, code, () => ({ ...record.labels, code }));
}
