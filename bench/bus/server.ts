import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { openConnection } from "#runtime/rpc/nats/testing/echo-world.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import type { Login } from "../measuring/bench-suite.ts";
import { argumentOf, sayReady } from "../measuring/peer-process.ts";
import { RAW_SUBJECT, SERVICE, STREAM_BYTES } from "./setting.ts";

const { url, login } = argumentOf<Login>();
const logger = createLogger({ name: SERVICE });
const interceptors = serverInterceptors({ logger, telemetry: await openTelemetry({ service: SERVICE }) });

const routes = (router: ConnectRouter) => {
  const value = new Uint8Array(STREAM_BYTES);
  router.service(EchoService, {
    unary: async (request) => ({ value: request.value }),
    async *serverStream(_request, context) {
      while (!context.signal.aborted) yield { value };
    },
  });
};

const raw = await openConnection({ url, login });
raw.subscribe(RAW_SUBJECT, {
  queue: SERVICE,
  callback: (_error, message) => {
    message.respond(message.data);
  },
});
await raw.flush();
await serveOnNats({ connection: await openConnection({ url, login }) }, { service: SERVICE, routes, interceptors });

const http2 = createServer(connectNodeAdapter({ routes, interceptors }));
http2.listen(0, "127.0.0.1", () => sayReady({ port: (http2.address() as AddressInfo).port }));
