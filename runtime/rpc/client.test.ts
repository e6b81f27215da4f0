import { create } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunService } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import { SpaceService } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { ToolProviderService } from "#gen/toolbus/tool/v1/provider_pb.ts";
import { clientFor } from "./client.ts";
import { serveOnHttp } from "./http/server.ts";
import { principalOf } from "./identity.ts";
import { serverInterceptors } from "./interceptors.ts";
import { EchoService } from "./nats/echo-service.fixture.ts";
import { type EchoWorld, openEchoWorld } from "./nats/echo-world.fixture.ts";
import { serveOnNats } from "./nats/server.ts";
import { roomOf } from "./rooms.ts";

const interceptors = serverInterceptors({ logger: pino({ level: "silent" }) });

describe("roomOf", () => {
  test("knows the home of each service of the contract", () => {
    expect(roomOf(RunService.typeName)).toBe("orchestrator");
    expect(roomOf(SpaceService.typeName)).toBe("spaces");
    expect(roomOf("toolbus.router.v1.ToolRouterService")).toBe("tool-router");
  });

  test("refuses a service that many serve", () => {
    expect(() => roomOf(ToolProviderService.typeName)).toThrow(
      "toolbus.tool.v1.ToolProviderService has no room of its own",
    );
  });
});

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
          unary(request, { requestHeader }) {
            seen.push(requestHeader.get("traceparent") ?? "", principalOf(requestHeader));
            return request;
          },
        }),
    });
    const client = clientFor(near, EchoService, { room: "echo" });
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
