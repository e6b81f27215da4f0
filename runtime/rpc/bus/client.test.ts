import { create } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { serveOnHttp } from "../http/server.ts";
import { callerOf, withPrincipal } from "../identity.ts";
import { serverInterceptors } from "../interceptors.ts";
import { EchoService } from "../nats/testing/echo-service.ts";
import { clientOnBus } from "./client.ts";
import { serveOnBus } from "./server.ts";

const logger = pino({ level: "silent" });

describe("from HTTP over the bus", () => {
  let bus: TestBus;
  beforeAll(async () => {
    bus = await openTestBus();
  });
  afterAll(() => bus[Symbol.asyncDispose]());

  test("a call arrives with its trace and its principal", async () => {
    const [near, far] = await Promise.all([bus.connect(), bus.connect()]);
    const seen: unknown[] = [];
    await using _room = await serveOnBus(far, {
      service: "echo",
      logger,
      routes: (router) =>
        router.service(EchoService, {
          unary(request, context) {
            seen.push(context.requestHeader.get("traceparent"), callerOf(context));
            return request;
          },
        }),
    });
    const client = clientOnBus(near, EchoService, { process: "echo" });
    const headers = { "toolbus-principal": "mallory", "toolbus-service": "gateway", "toolbus-roles": "operator" };
    await using door = await serveOnHttp({
      interceptors: serverInterceptors({ logger }),
      routes: (router) =>
        router.service(EchoService, {
          unary: (request) => withPrincipal("ann", () => client.unary(request, { headers })),
        }),
    });
    const transport = createConnectTransport({ baseUrl: door.url, httpVersion: "1.1" });
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await createClient(EchoService, transport).unary(create(BytesValueSchema), { headers: { traceparent } });
    expect(seen).toEqual([traceparent, { principal: "ann", service: "admin", isOperator: false }]);
  });
});
