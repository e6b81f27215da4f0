import { Code, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { freezeProcess, signalProcess } from "../../../../test/harness/processes.ts";
import { deliveryOf } from "../call/delivery.ts";
import { createNatsTransport } from "../client/transport.ts";
import { serveOnNats } from "../server/server.ts";
import { failureOf, readAll } from "../testing/echo-outcome.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

const value = new Uint8Array([7]);
let lastService = 0;

/** A server that counts what it starts, and whose calls wait for `release`, if they are told to. */
async function openCounting(timings = { heartbeatMs: 1_000, silenceMs: 3_000 }) {
  lastService += 1;
  const service = `broker-${lastService}`;
  const released = Promise.withResolvers<void>();
  let started = 0;
  let startedLate = 0;
  const server = await serveOnNats(await world.connect(), {
    service,
    timings,
    routes: (router) =>
      router.service(EchoService, {
        async unary(request, context) {
          started += 1;
          if (context.requestHeader.has("x-late")) startedLate += 1;
          if (context.requestHeader.has("x-wait")) await released.promise;
          return request;
        },
        async *serverStream(request) {
          started += 1;
          yield request;
          await released.promise;
        },
      }),
  });
  const client = createClient(EchoService, createNatsTransport(await world.connect(), { service, timings }));
  return {
    client,
    get started() {
      return started;
    },
    get startedLate() {
      return startedLate;
    },
    async [Symbol.asyncDispose]() {
      released.resolve();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe("a broker that fails", () => {
  test("BUS-2 a nats-server that is killed and started again ends the calls under way clearly, and the next ones work", async () => {
    await using counting = await openCounting();
    const unary = failureOf(counting.client.unary({}, { headers: { "x-wait": "1" } }));
    const stream = failureOf(readAll(counting.client.serverStream({ value })));
    await until(() => counting.started === 2);
    process.kill(world.server.pid, "SIGKILL");
    for (const failure of [unary, stream]) {
      const error = await failure;
      expect([error.code, deliveryOf(error)]).toEqual([Code.Unavailable, "UNKNOWN"]);
      expect(error.rawMessage).toContain("the connection to NATS broke");
    }
    const during = counting.client.unary({ value }).then(
      () => "answered",
      (error) => deliveryOf(error),
    );
    await world.restart();
    expect(["answered", "NOT_SENT"]).toContain(await during);
    await until(async () => {
      const answer = await counting.client.unary({ value }).catch(() => undefined);
      return answer?.value.length === 1;
    });
    expect(await firstOf(counting.client.serverStream({ value }))).toBe(1);
  });

  test("BUS-2 a call while NATS is away waits for it, and fails as not sent when it stays away", async () => {
    await using counting = await openCounting({ heartbeatMs: 100, silenceMs: 300 });
    await counting.client.unary({ value });
    process.kill(world.server.pid, "SIGKILL");
    await world.server.exited;
    const error = await until(async () => {
      const thrown = await failureOf(counting.client.unary({ value }));
      return thrown.rawMessage === "NATS cannot be reached" && thrown;
    });
    expect([error.code, deliveryOf(error)]).toEqual([Code.Unavailable, "NOT_SENT"]);
    await world.restart();
    await until(() =>
      counting.client.unary({ value }).then(
        () => true,
        () => false,
      ),
    );
  });

  test("BUS-2 requests that a frozen broker delivers after their time are refused and not started", async () => {
    await using counting = await openCounting({ heartbeatMs: 100, silenceMs: 400 });
    await counting.client.unary({ value });
    await freezeProcess(world.server);
    const headers = { "x-late": "1" };
    const calls = [
      ...Array.from({ length: 10 }, () => failureOf(counting.client.unary({ value }, { headers }))),
      ...Array.from({ length: 10 }, () => failureOf(counting.client.unary({ value }, { headers, timeoutMs: 200 }))),
    ];
    const codes = (await Promise.all(calls)).map((error) => [error.code, deliveryOf(error)]);
    signalProcess(world.server, "SIGCONT");
    expect(codes.slice(0, 10)).toEqual(Array(10).fill([Code.Unavailable, "UNKNOWN"]));
    expect(codes.slice(10)).toEqual(Array(10).fill([Code.DeadlineExceeded, "UNKNOWN"]));
    await until(() =>
      counting.client.unary({ value }).then(
        () => true,
        () => false,
      ),
    ); // comes after all of them
    expect(counting.startedLate).toBe(0);
  });
});

async function firstOf(answers: AsyncIterable<{ value: Uint8Array }>): Promise<number> {
  for await (const answer of answers) return answer.value.length;
  return -1;
}
