import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { createNatsTransport } from "#runtime/rpc/nats/client/transport.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { openConnection } from "#runtime/rpc/nats/testing/echo-world.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { medianOf } from "../measuring/result.ts";
import { type Login, type Order, RAW_SUBJECT, type Report, SERVICE, UNARY_BYTES, type Way } from "./setting.ts";

const { port, url, login }: Login & { port: number } = JSON.parse(process.argv[2] ?? "");
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

async function measureUnary(order: Extract<Order, { kind: "unary" }>): Promise<Report> {
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + order.durationMs;
  const worker = async () => {
    for (let before = performance.now(); before < endsAt; ) {
      await call[order.way]();
      const after = performance.now();
      latenciesMs.push(after - before);
      before = after;
    }
  };
  await Promise.all(Array.from({ length: order.inFlight }, worker));
  const perSecond = (latenciesMs.length * 1_000) / (performance.now() - startedAt);
  return { kind: "unary", perSecond, p50Ms: medianOf(latenciesMs) };
}

async function measureStream(durationMs: number): Promise<Report> {
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
  return { kind: "stream", megabytesPerSecond: bytes / 1e6 / (elapsedMs / 1_000) };
}

process.on("message", async (order: Order) => {
  process.send?.(order.kind === "unary" ? await measureUnary(order) : await measureStream(order.durationMs));
});
process.on("disconnect", () => process.exit());
process.send?.({ kind: "ready" });
