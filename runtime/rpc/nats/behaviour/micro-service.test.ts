import { type ConnectError, createClient } from "@connectrpc/connect";
import { Svcm } from "@nats-io/services";
import { afterAll, beforeAll, expect, test } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { createNatsTransport } from "../client/transport.ts";
import { serveOnNats } from "../server/server.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

async function collected<T>(answers: Promise<AsyncIterable<T>>): Promise<T[]> {
  const all: T[] = [];
  for await (const answer of await answers) all.push(answer);
  return all;
}

test("BUS-5 nats tools see a service with its instances, its methods and what their calls took", async () => {
  const service = "discovered";
  const bus = await world.connect();
  await using _server = await serveOnNats(await world.connect(), {
    service,
    instance: "instance-one",
    version: "2.3.4",
    routes: (router) =>
      router.service(EchoService, {
        async unary(request) {
          await delay(20); // the time that is to be seen in the statistics
          if (request.value.length === 0) throw new Error("nothing to echo");
          return request;
        },
      }),
  });
  const client = createClient(EchoService, createNatsTransport(bus, { service }));
  await client.unary({ value: new Uint8Array(1) });
  await client.unary({}).catch((error: ConnectError) => error);

  const tools = new Svcm(bus.connection).client();
  const [info] = await collected(tools.info(service));
  expect(info).toMatchObject({ name: service, version: "2.3.4", metadata: { instance: "instance-one" } });
  expect(info?.endpoints.map((endpoint) => endpoint.subject).toSorted()).toEqual(
    ["Bidi", "ClientStream", "ServerStream", "Unary"].map(
      (name) => `toolbus.rpc.discovered.toolbus.echo.v1.EchoService.${name}`,
    ),
  );
  expect(info?.endpoints.every((endpoint) => endpoint.queue_group === service)).toBe(true);

  const unary = await until(async () => {
    const [stats] = await collected(tools.stats(service));
    const endpoint = stats?.endpoints?.find(({ name }) => name === "toolbus_echo_v1_EchoService_Unary");
    return endpoint?.num_requests === 2 && endpoint;
  });
  expect(unary).toMatchObject({ num_errors: 1, data: { in_flight: 0 } });
  expect(unary.last_error).toContain("internal error");
  expect(unary.average_processing_time).toBeGreaterThan(15e6);
});
