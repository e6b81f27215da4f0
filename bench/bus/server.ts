import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { publicKeyOf } from "#runtime/bus/credentials/login.ts";
import { trustListOf } from "#runtime/bus/credentials/trust/trust-list.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { openConnection } from "#runtime/rpc/nats/testing/echo-world.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { type Login, RAW_SUBJECT, SERVICE, STREAM_BYTES } from "./setting.ts";

const { url, login }: Login = JSON.parse(process.argv[2] ?? "");
const logger = createLogger({ name: SERVICE });
const telemetry = await openTelemetry({ service: SERVICE });
const trusted = trustListOf([{ name: login.name, publicKey: publicKeyOf(login), speaksFor: "everybody" }]);
const trust = async () => trusted;

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
const connection = await openConnection({ url, login });
await serveOnBus({ connection, trust }, { service: SERVICE, routes, logger, telemetry });

const http2 = createServer(connectNodeAdapter({ routes, interceptors: serverInterceptors({ logger, telemetry }) }));
http2.listen(0, "127.0.0.1", () => process.send?.({ kind: "ready", port: (http2.address() as AddressInfo).port }));
process.on("disconnect", () => process.exit());
