import { Code, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { deliveryOf } from "../call/delivery.ts";
import { createNatsTransport } from "../client/transport.ts";
import { failureOf, readAll } from "../testing/echo-outcome.ts";
import { openEchoProcess } from "../testing/echo-process.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";
import { serveOnNats } from "./server.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

let lastService = 0;

function nameService(): string {
  lastService += 1;
  return `stopping-${lastService}`;
}

async function openClient(service: string) {
  return createClient(EchoService, createNatsTransport(await world.connect(), { service }));
}

/** A server whose calls wait until they are released. */
async function openHeld(service: string, drainTimeoutMs = 10_000) {
  const released = Promise.withResolvers<void>();
  let started = 0;
  const server = await serveOnNats(await world.connect(), {
    service,
    drainTimeoutMs,
    routes: (router) =>
      router.service(EchoService, {
        async unary(request) {
          started += 1;
          await released.promise;
          return request;
        },
        async *serverStream(request) {
          started += 1;
          yield request;
          await released.promise;
          yield request;
        },
      }),
  });
  return {
    released,
    stop: () => server[Symbol.asyncDispose](),
    get started() {
      return started;
    },
  };
}

describe("a server that stops", () => {
  test("BUS-2 leaves the queue group first and finishes what it has", async () => {
    const service = nameService();
    const held = await openHeld(service);
    const client = await openClient(service);
    const value = new Uint8Array([1]);
    const unary = client.unary({ value });
    const stream = readAll(client.serverStream({ value }));
    await until(() => held.started === 2);
    let isStopped = false;
    const stopped = held.stop().then(() => (isStopped = true));
    const refused = await until(async () => {
      const error = await failureOf(client.unary({ value }, { timeoutMs: 100 }));
      return error.code === Code.Unavailable && error;
    });
    expect([deliveryOf(refused), isStopped]).toEqual(["NOT_SENT", false]);
    held.released.resolve();
    expect((await unary).value).toHaveLength(1);
    expect(await stream).toHaveLength(2);
    await stopped;
  });

  test("BUS-2 loses none of the calls that come while it leaves", async () => {
    const service = nameService();
    const client = await openClient(service);
    const routes = (router: Parameters<Parameters<typeof serveOnNats>[1]["routes"]>[0]) =>
      router.service(EchoService, { unary: async (request) => request });
    const first = await serveOnNats(await world.connect(), { service, routes });
    await using _second = await serveOnNats(await world.connect(), { service, routes });
    let isOver = false;
    let answered = 0;
    const callers = Array.from({ length: 32 }, async () => {
      while (!isOver) {
        await client.unary({});
        answered += 1;
      }
    });
    await until(() => answered > 200);
    await first[Symbol.asyncDispose]();
    const answeredByThen = answered;
    await until(() => answered > answeredByThen + 200);
    isOver = true;
    await Promise.all(callers);
  });

  test("BUS-2 ends calls that do not end after the time to drain, and tells their callers", async () => {
    const service = nameService();
    const held = await openHeld(service, 100);
    const client = await openClient(service);
    const failures = [failureOf(client.unary({})), failureOf(readAll(client.serverStream({})))];
    await until(() => held.started === 2);
    await held.stop();
    for (const failure of failures) {
      const error = await failure;
      expect([error.code, error.rawMessage]).toEqual([Code.Unavailable, "the service is stopping"]);
    }
    held.released.resolve();
  });
});

describe("two servers of one service", () => {
  test("BUS-2 share the calls, and the one that is killed takes only those in its hands with it", async () => {
    const service = nameService();
    const client = await openClient(service);
    await using victim = await openEchoProcess(world, { role: "server", service });
    await using survivor = await openEchoProcess(world, { role: "server", service });
    const answeredBy = new Map<string, number>();
    const failures: unknown[] = [];
    let isOver = false;
    const callers = Array.from({ length: 64 }, async () => {
      while (!isOver) {
        const outcome = await client.unary({}).catch((error: unknown) => error);
        if (outcome instanceof Error) failures.push([Reflect.get(outcome, "code"), deliveryOf(outcome)]);
        else count(answeredBy, Buffer.from(Reflect.get(Object(outcome), "value")).toString());
      }
    });
    await until(() => sumOf(answeredBy) > 2_000);
    const sharesBefore = [victim, survivor].map((server) => answeredBy.get(String(server.pid)) ?? 0);
    victim.kill("SIGKILL");
    const before = sumOf(answeredBy);
    await until(() => sumOf(answeredBy) > before + 1_000);
    isOver = true;
    await Promise.all(callers);
    for (const share of sharesBefore) expect(share / before).toBeGreaterThan(0.25);
    expect(failures.length).toBeLessThanOrEqual(64);
    for (const failure of failures) expect(failure).toEqual([Code.Unavailable, "UNKNOWN"]);
    expect((await client.unary({})).value.length).toBeGreaterThan(0);
  });
});

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function sumOf(counts: Map<string, number>): number {
  return [...counts.values()].reduce((sum, value) => sum + value, 0);
}
