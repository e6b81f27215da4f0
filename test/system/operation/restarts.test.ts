// BUS-4: a service can be stopped and started at any time, in any order. The agent `whole` needs a tool of every provider:
// the suite is whole when the router offers all of them, and a run started then must end well.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { type Connection, openConnection } from "../../../cli/connection.ts";
import { foldersOfProject, projectDirectory } from "../../../cli/project/project.ts";
import { listServices } from "../../../cli/suite/service-names.ts";
import type { SuiteService } from "../../../cli/suite/services.ts";
import { type ServiceEvent, ServicesProcess } from "../../../cli/suite/services-process.ts";
import { plainAgent, runToEnd } from "../../harness/agents/plain-run.ts";
import { openTestServer } from "../../harness/bus.ts";
import { signalProcess } from "../../harness/processes.ts";
import { programOf } from "../../harness/programs.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

/**
 * How soon after the last service is up the suite must be whole. A service needs half a second to start; where it needs more,
 * the machine is busy, and four times as long is allowed.
 */
const wholeAgainMs = 2_000;
const startsAllowed = 4;

const apiKey = "key-of-the-local-one";
const behindGateway = listServices().filter((service) => service !== "gateway");

describe("BUS-4 a service is killed in a running suite", () => {
  const stack = new AsyncDisposableStack();
  const lastReady = createLastReady();
  let suite: TestSuite;
  beforeAll(async () => {
    suite = stack.use(await openTestSuite({ isolate: true, env: plainAgent, onEvent: lastReady.note }));
    await wholeAfter(suite.connection, lastReady);
  });
  afterAll(() => stack.disposeAsync());

  const serviceOf = (name: string): SuiteService => {
    const service = suite.services.find((candidate) => candidate.service === name);
    if (service === undefined) throw new Error(`no ${name}`);
    return service;
  };

  it.each(behindGateway)(
    "%s: it starts again, the suite is whole within two seconds, a run ends well",
    async (service) => {
      const count = lastReady.count();
      signalProcess(serviceOf(service), "SIGKILL");
      await until(() => lastReady.count() > count, { timeoutMs: 20_000, what: `${service} to be up again` });
      expect(await wholeAfter(suite.connection, lastReady)).toBeLessThanOrEqual(lastReady.boundMs());
      await expectRunEndsWell(suite.connection, service);
    },
  );

  it("all of them at once", async () => {
    const count = lastReady.count();
    for (const service of behindGateway) signalProcess(serviceOf(service), "SIGKILL");
    const isUp = () => lastReady.count() === count + behindGateway.length;
    await until(isUp, { timeoutMs: 40_000, what: "all to be up again" });
    expect(await wholeAfter(suite.connection, lastReady)).toBeLessThanOrEqual(lastReady.boundMs());
    await expectRunEndsWell(suite.connection, "all");
  });

  it("BUS-6 nats-server: it is started again with its store, and nobody else has to be", async () => {
    const count = lastReady.count();
    const first = await runToEnd(suite.connection, { agent: "plain", text: "before" });
    const before = suite.nats.pid;
    signalProcess({ pid: before }, "SIGKILL");
    await until(() => suite.nats.pid !== before, { what: "nats-server to be started again" });
    const startedAgainMs = tickedMs();
    await wholeAfter(suite.connection, lastReady);
    expect(tickedMs() - startedAgainMs).toBeLessThanOrEqual(lastReady.boundMs());
    await expectRunEndsWell(suite.connection, "after");
    const { run } = await suite.connection.client(RunService).getRun({ runId: first.id });
    expect(run?.outputText).toBe("I heard before.");
    expect(lastReady.count()).toBe(count);
  });
});

describe("BUS-4 services are started one by one, before NATS", () => {
  const orders = {
    "in the order of their names": listServices(),
    "in the reverse order": listServices().reverse(),
  };

  it.each(Object.entries(orders))("%s: each waits for what it needs", async (_title, services) => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openTestServer());
    await server.kill();
    const lastReady = createLastReady();
    const env = {
      ...process.env,
      ...foldersOfProject(projectDirectory(), plainAgent),
      TOOLBUS_BUS_CREDENTIALS: server.credentials,
      TOOLBUS_HTTP_PORT: "0",
      TOOLBUS_LOCAL_KEY: apiKey,
    };
    const started = services.map((service) =>
      stack.use(
        new ServicesProcess({
          services: [{ service, instance: `${service}-1` }],
          env,
          natsUrl: Promise.resolve(server.url),
          restart: false,
          program: programOf("cli/suite/services-program"),
          onEvent: lastReady.note,
        }),
      ),
    );
    await until(() => started.every((service) => service.pid !== undefined), { what: "all to be started" });
    expect(lastReady.count(), "nobody is ready without NATS").toBe(0);
    await server.restart();
    await Promise.all(started.map((service) => service.ready));
    const connection = openConnection({ url: lastReady.gatewayUrl(), apiKey });
    expect(await wholeAfter(connection, lastReady)).toBeLessThanOrEqual(lastReady.boundMs());
    await expectRunEndsWell(connection, "late");
  });
});

/** When services said that they are ready. */
interface LastReady {
  note(event: ServiceEvent): void;
  count(): number;
  /** The bound of this machine at this moment. */
  boundMs(): number;
  atMs(): number;
  gatewayUrl(): string;
}

function createLastReady(): LastReady {
  let count = 0;
  let atMs = 0;
  let startMs = 0;
  let url = "";
  return {
    note(event) {
      if (event.kind !== "ready") return;
      count += 1;
      atMs = tickedMs();
      startMs = event.durationMs;
      if (event.service === "gateway") url = String(event.announcement.url);
    },
    count: () => count,
    boundMs: () => Math.max(wholeAgainMs, startsAllowed * startMs),
    atMs: () => atMs,
    gatewayUrl: () => url,
  };
}

/** Waits until every tool of the agent `whole` can be called, and tells how long after the last `ready` that was. */
async function wholeAfter(connection: Connection, lastReady: LastReady): Promise<number> {
  const router = connection.client(ToolService);
  const isWhole = async () => {
    const response = await router.listTools({ scope: { case: "agent", value: "whole" } }).catch(() => undefined);
    const names = response?.tools.filter((tool) => tool.callable && tool.available).map((tool) => tool.modelName);
    return ["repeat", "everything__echo", "qr__encode", "get_plans"].every((name) => names?.includes(name));
  };
  await until(isWhole, { timeoutMs: 20_000, what: "the suite to be whole" });
  return Math.round(tickedMs() - lastReady.atMs());
}

async function expectRunEndsWell(connection: Connection, text: string): Promise<void> {
  const run = await runToEnd(connection, { agent: "whole", text });
  const outputText = `I heard ${text}, Echo: ${text} and ${text}.`;
  expect(run).toMatchObject({ state: RunState.COMPLETED, error: "", outputText });
}
