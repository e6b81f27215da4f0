import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "#gen/health/v1/health_pb.ts";
import { RunService } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import { RunStatus } from "#gen/toolbus/run/v1/run_pb.ts";
import { until } from "#runtime/time/until.ts";
import { type Connection, openConnection } from "../../cli/connection.ts";
import { listRooms } from "../../cli/suite/rooms.ts";
import { openServiceProcess, type ServiceProcess } from "../../cli/suite/service-process.ts";
import { openTestServer, type TestServer } from "../harness/bus.ts";
import { plainAgent, runToEnd } from "../harness/plain-run.ts";
import { openTestSuite, type TestSuite } from "../harness/suite.ts";

/** How soon the suite must be whole again after the last service is up. */
const wholeAgainMs = 2_000;

describe("BUS-4 a service can be stopped and started at any time, in any order", () => {
  const stack = new AsyncDisposableStack();
  let suite: TestSuite;
  beforeAll(async () => {
    suite = stack.use(await openTestSuite({ env: plainAgent }));
  });
  afterAll(() => stack.disposeAsync());

  const serviceOf = (room: string): ServiceProcess => {
    const service = suite.services.find((candidate) => candidate.room === room);
    if (service === undefined) throw new Error(`no ${room}`);
    return service;
  };

  const isServed = async () => {
    const { statuses } = await suite.connection.client(Health).list({});
    return Object.values(statuses).every(({ status }) => status === ServingStatus.SERVING);
  };

  const behindGateway = listRooms().filter((room) => room !== "gateway");

  it.each(behindGateway)("%s is killed, starts again, and a run started then ends well", async (room) => {
    const service = serviceOf(room);
    const before = service.pid;
    process.kill(before ?? 0, "SIGKILL");
    await until(() => service.pid !== undefined && service.pid !== before, { what: `${room} to be started again` });
    await until(isServed, { timeoutMs: 20_000, what: `${room} to answer` });
    await expectWhole(() => runToEnd(suite.connection, { agent: "plain", text: room }), room);
  });

  it("all of them are killed at once, and a run started then ends well", async () => {
    const before = new Map(behindGateway.map((room) => [room, serviceOf(room).pid]));
    for (const pid of before.values()) process.kill(pid ?? 0, "SIGKILL");
    const isAgain = (room: string) => serviceOf(room).pid !== undefined && serviceOf(room).pid !== before.get(room);
    await until(() => behindGateway.every(isAgain), { what: "all to be started again" });
    await until(isServed, { timeoutMs: 30_000, what: "all to answer" });
    await expectWhole(() => runToEnd(suite.connection, { agent: "plain", text: "all" }), "all");
  });
});

describe("BUS-6 one machine", () => {
  it("nats-server is killed, is started again with its store, and a run started then ends well", async () => {
    await using suite = await openTestSuite({ env: plainAgent });
    const first = await runToEnd(suite.connection, { agent: "plain", text: "before" });
    const before = suite.nats.pid;
    process.kill(before ?? 0, "SIGKILL");
    await until(() => suite.nats.pid !== before, { what: "nats-server to be started again" });
    await expectWhole(() => runToEnd(suite.connection, { agent: "plain", text: "after" }), "after");
    const { run } = await suite.connection.client(RunService).getRun({ runId: first.id });
    expect(run?.outputText).toBe("I heard before.");
  });
});

describe("BUS-4 services start in any order, NATS last", () => {
  const stack = new AsyncDisposableStack();
  const ready: string[] = [];
  let server: TestServer;
  let connection: Connection;
  afterAll(() => stack.disposeAsync());

  it("each waits for what it needs, and the suite is whole within two seconds of the last one being up", async () => {
    server = stack.use(await openTestServer());
    await server.kill();
    const { url, user, password } = server;
    const announced = Promise.withResolvers<string>();
    const services = [...listRooms()].reverse().map((room) =>
      stack.use(
        openServiceProcess({
          room,
          instance: `${room}-1`,
          env: {
            ...process.env,
            ...plainAgent,
            NATS_URL: url,
            NATS_USER: user,
            NATS_PASSWORD: password,
            TOOLBUS_HTTP_PORT: "0",
            TOOLBUS_INSTANCE: `${room}-1`,
          },
          restart: false,
          onEvent: (event) => {
            if (event.kind !== "ready") return;
            ready.push(event.room);
            if (event.room === "gateway") announced.resolve(String(event.announcement.url));
          },
        }),
      ),
    );
    await until(() => services.every((service) => service.pid !== undefined), { what: "all to be started" });
    expect(ready, "nobody is ready without NATS").toEqual([]);
    await server.restart();
    await Promise.all(services.map((service) => service.ready));
    connection = openConnection({ url: await announced.promise });
    await expectWhole(() => runToEnd(connection, { agent: "plain", text: "late" }), "late");
  });

  it("NATS itself is killed and started again, and a run started then ends well", async () => {
    await server.kill();
    await server.restart();
    await expectWhole(() => runToEnd(connection, { agent: "plain", text: "again" }), "again");
    expect(ready, "no service had to be started again").toHaveLength(listRooms().length);
  });
});

/** Tries until a run ends well; that must not take longer than the suite may take to be whole, and the run itself. */
async function expectWhole(run: () => ReturnType<typeof runToEnd>, text: string): Promise<void> {
  const startedAt = performance.now();
  const ended = await until(() => run().catch(() => undefined), { timeoutMs: 15_000, what: "a run to end well" });
  const tookMs = performance.now() - startedAt;
  expect(ended).toMatchObject({ status: RunStatus.COMPLETED, outputText: `I heard ${text}.` });
  expect(tookMs).toBeLessThan(wholeAgainMs + 1_000);
}
