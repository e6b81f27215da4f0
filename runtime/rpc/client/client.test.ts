import { create } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveOnHttp } from "../http/server.ts";
import { callerOf, principalOf } from "../identity.ts";
import { serverInterceptors } from "../interceptors.ts";
import { serveOnNats } from "../nats/server/server.ts";
import { EchoService } from "../nats/testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../nats/testing/echo-world.ts";
import { clientOnBus } from "./client.ts";

const interceptors = serverInterceptors({ logger: pino({ level: "silent" }) });

describe("from HTTP over the bus", () => {
  let world: EchoWorld;
  beforeAll(async () => {
    world = await openEchoWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("a call arrives with its trace and its principal", async () => {
    const [near, far] = await Promise.all([world.connect(), world.connect()]);
    const seen: string[] = [];
    await using _room = await serveOnNats(far, {
      service: "echo",
      interceptors,
      routes: (router) =>
        router.service(EchoService, {
          unary(request, context) {
            seen.push(context.requestHeader.get("traceparent") ?? "", principalOf(callerOf(context)));
            return request;
          },
        }),
    });
    const client = clientOnBus(near, EchoService, { process: "echo" });
    await using door = await serveOnHttp({
      interceptors,
      routes: (router) => router.service(EchoService, { unary: (request) => client.unary(request) }),
    });
    const transport = createConnectTransport({ baseUrl: door.url, httpVersion: "1.1" });
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await createClient(EchoService, transport).unary(create(BytesValueSchema), {
      headers: { traceparent, "toolbus-principal": "ann" },
    });
    expect(seen).toEqual([traceparent, "ann"]);
  });
});
