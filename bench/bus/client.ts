import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { createNatsTransport } from "#runtime/rpc/nats/client/transport.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { openConnection } from "#runtime/rpc/nats/testing/echo-world.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import type { Login } from "../measuring/bench-suite.ts";
import { measureLatencies } from "../measuring/latencies.ts";
import { answerOrders, argumentOf, sayReady } from "../measuring/peer-process.ts";
import { type Order, RAW_SUBJECT, type Report, SERVICE, UNARY_BYTES, type Way } from "./setting.ts";

const { port, url, login } = argumentOf<Login & { port: number }>();
const interceptors = clientInterceptors({ telemetry: await openTelemetry({ service: SERVICE }) });
const value = new Uint8Array(UNARY_BYTES).fill(7);

const raw = await openConnection({ url, login });
const bus = createClient(
  EchoService,
  createNatsTransport({ connection: await openConnection({ url, login }) }, { service: SERVICE, interceptors }),
);
const baseUrl = `http://127.0.0.1:${port}`;
const h2 = createClient(
  EchoService,
  createConnectTransport({ baseUrl, httpVersion: "2", interceptors, useBinaryFormat: true }),
);

const call: Record<Way, () => Promise<unknown>> = {
  raw: () => raw.request(RAW_SUBJECT, value, { timeout: 10_000 }),
  bus: () => bus.unary({ value }),
  h2: () => h2.unary({ value }),
};

async function measureStream(durationMs: number): Promise<number> {
  const controller = new AbortController();
  const startedAt = performance.now();
  let bytes = 0;
  let elapsedMs = 0;
  try {
    for await (const message of bus.serverStream({}, { signal: controller.signal })) {
      bytes += message.value.length;
      elapsedMs = performance.now() - startedAt;
      if (elapsedMs >= durationMs) controller.abort();
    }
  } catch (error) {
    if (!controller.signal.aborted) throw error; // the abort is how this reader ends an endless stream
  }
  return bytes / 1e6 / (elapsedMs / 1_000);
}

answerOrders(async (order: Order): Promise<Report> => {
  if (order.kind === "stream") return { kind: "stream", megabytesPerSecond: await measureStream(order.durationMs) };
  return { kind: "unary", ...(await measureLatencies(call[order.way], order)) };
});
sayReady();
