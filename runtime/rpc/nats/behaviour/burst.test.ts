import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { CallMux } from "../channel/mux.ts";
import { createNatsTransport } from "../client/transport.ts";
import { serveOnNats } from "../server/server.ts";
import { openEchoProcess } from "../testing/echo-process.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";

/*
 * More than nats-server holds for one connection, for a process that does not read for a while: it is frozen, so that the other
 * side's messages are all at the broker before it reads the first.
 */

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

const CALLS = 400;
const value = new Uint8Array(250 * 1024).fill(7);
/** So long that no heartbeat turns a call of one message each way into more. */
const timings = { heartbeatMs: 10_000, silenceMs: 30_000 };
const timeoutMs = 60_000;

describe("many unary calls at once", () => {
  test("BUS-2 a caller that does not read for a while gets all of 100 MiB of answers, and its connection holds", {
    timeout: 2 * timeoutMs,
  }, async () => {
    const service = "burst-answers";
    const { connection } = await world.connect();
    const released = Promise.withResolvers<void>();
    let begun = 0;
    let done = 0;
    await using _server = await serveOnNats(
      { connection },
      {
        service,
        timings,
        routes: (router) =>
          router.service(EchoService, {
            async unary() {
              begun += 1;
              await released.promise;
              done += 1;
              return { value };
            },
          }),
      },
    );
    await using caller = await openEchoProcess(world, { role: "burst", service, timings, calls: CALLS });
    await until(() => begun === CALLS, { timeoutMs });
    caller.kill("SIGSTOP");
    released.resolve();
    await until(() => done === CALLS, { timeoutMs });
    await connection.flush();
    caller.kill("SIGCONT");
    const { answers, failures } = await caller.burst;
    expect(failures).toEqual([]);
    expect(answers).toEqual(Array(CALLS).fill(value.length));
  });

  test("BUS-2 a server that does not read for a while serves all of 100 MiB of requests, and its connection holds", {
    timeout: 2 * timeoutMs,
  }, async () => {
    const service = "burst-requests";
    await using server = await openEchoProcess(world, { role: "server", service, timings });
    server.kill("SIGSTOP");
    const { connection } = await world.connect();
    const client = createClient(EchoService, createNatsTransport({ connection }, { service, timings }));
    const calls = Promise.allSettled(Array.from({ length: CALLS }, () => client.unary({ value })));
    await connection.flush();
    server.kill("SIGCONT");
    const failures = (await calls).flatMap((outcome) =>
      outcome.status === "rejected" ? [String(outcome.reason)] : [],
    );
    expect(failures).toEqual([]);
    expect(server.begun).toBe(CALLS);
    const { budget, openings } = CallMux.of(connection);
    expect([budget.used, openings.used]).toEqual([0, 0]);
  });
});
