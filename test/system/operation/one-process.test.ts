// The suite in one process and in a process for each service: whoever uses it or looks after it sees the same.

import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Svcm } from "@nats-io/services";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { type CollectedSpan, openCollector } from "#runtime/telemetry/testing/collector.ts";
import { until } from "#runtime/time/until.ts";
import { listServices } from "../../../cli/suite/service-names.ts";
import type { ServiceEvent } from "../../../cli/suite/services-process.ts";
import { plainAgent, runToEnd } from "../../harness/agents/plain-run.ts";
import { signalProcess } from "../../harness/processes.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

/** What can be seen of a suite that was started, used and stopped. */
type Seen = Awaited<ReturnType<typeof useSuite>>;

async function useSuite(isolate: boolean) {
  await using collector = await openCollector();
  const events: ServiceEvent[] = [];
  const env = { ...plainAgent, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  await using stack = new AsyncDisposableStack();
  const suite = stack.use(await openTestSuite({ isolate, env, onEvent: (event) => events.push(event) }));
  const processes = new Set(suite.services.map(({ pid }) => pid)).size;
  await applyAgent(suite);
  const run = await runToEnd(suite.connection, { agent: "applied", text: "both" });
  const seen = {
    run: { state: run.state, error: run.error, outputText: run.outputText, usage: run.usage },
    runEvents: await watchedEvents(suite, run.id),
    health: await textAt(suite, "healthz"),
    metrics: metricNames(await textAt(suite, "metrics")),
    instances: await instancesOnBus(suite),
    tracedServices: await tracedServices(collector.spans),
  };
  await suite.stop();
  const ends = events.flatMap((event) =>
    event.kind === "ended" ? [`${event.instance} ${event.how} ${event.asked}`] : [],
  );
  return { processes, seen: { ...seen, ends: ends.sort(), logs: await logsIn(suite.directory) } };
}

/** The agent `whole` under another name, as a client applies it: it needs a tool of every provider. */
async function applyAgent({ connection }: TestSuite): Promise<void> {
  const agents = connection.client(AgentService);
  const { agent } = await until(() => agents.getAgent({ name: "whole" }).catch(() => undefined));
  if (agent?.agent === undefined) throw new Error("there is no agent to copy");
  await agents.applyAgent({ agent: { ...agent.agent, name: "applied" } });
}

/** The kinds of a run's stored events, in their order. Checkpoints of text are left out: they are written now and then. */
async function watchedEvents({ connection }: TestSuite, runId: string): Promise<string[]> {
  const kinds: string[] = [];
  for await (const { update } of connection.client(RunService).watchRun({ runId, fromSequence: 0n })) {
    if (update.case === "event" && update.value.event.case !== "textCheckpoint")
      kinds.push(update.value.event.case ?? "");
  }
  return kinds;
}

async function textAt({ url, apiKey = "" }: TestSuite, path: string): Promise<string> {
  return (await fetch(`${url}/${path}`, { headers: { "x-api-key": apiKey } })).text();
}

const metricNames = (text: string) =>
  [...new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name))].sort();

/** Who answers on the bus: health as operators ask for it. */
async function instancesOnBus(suite: TestSuite): Promise<string[]> {
  const bus = await suite.openBus();
  const found: string[] = [];
  for await (const { name, metadata } of await new Svcm(bus.connection).client().ping()) {
    found.push(`${name} ${metadata?.instance}`);
  }
  return found.sort();
}

async function tracedServices(spans: readonly CollectedSpan[]): Promise<string[]> {
  const services = () => [...new Set(spans.map(({ service }) => service))].sort();
  return until(() => services().length === listServices().length && services(), {
    timeoutMs: 20_000,
    what: "spans of every service",
  });
}

/** By file: whose lines it holds, and what its last one says. */
async function logsIn(directory: string): Promise<Record<string, unknown>> {
  const files = (await readdir(join(directory, "logs"))).sort();
  const each = files.map(async (file) => {
    const text = await readFile(join(directory, "logs", file), "utf8");
    const lines = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, string>);
    const owners = [...new Set(lines.map(({ service, instance }) => `${service} ${instance}`))];
    return [file, { owners, last: lines.at(-1)?.msg }] as const;
  });
  return Object.fromEntries(await Promise.all(each));
}

describe("the suite in one process, beside one with a process for each service", () => {
  let together: Seen;
  let isolated: Seen;
  beforeAll(async () => {
    together = await useSuite(false);
    isolated = await useSuite(true);
  }, 120_000);

  it("has as many processes as it says", () => {
    expect(together.processes).toBe(1);
    expect(isolated.processes).toBe(listServices().length);
  });

  it("answers, logs, measures, traces and ends the same", () => {
    expect(together.seen).toEqual(isolated.seen);
  });

  it("does all of it", () => {
    const { run, runEvents, instances, tracedServices, ends, logs } = together.seen;
    expect(run).toMatchObject({ state: RunState.COMPLETED, outputText: "I heard both, Echo: both and both." });
    expect(runEvents.filter((kind) => kind === "callFinished")).toHaveLength(4);
    expect(instances).toContain("orchestrator orchestrator-1");
    expect(tracedServices).toContain("worker-pool");
    expect(ends).toEqual(listServices().map((service) => `${service}-1 exit code 0 true`));
    expect(logs).toMatchObject(
      Object.fromEntries(
        listServices().map((service) => [`${service}.log`, { owners: [`${service} ${service}-1`], last: "stopped" }]),
      ),
    );
  });
});

describe.each([true, false])("with isolate %s", (isolate) => {
  it("a service that cannot start is named, with what to do, and nothing stays behind", async () => {
    await using taken = await takenPort();
    const lines: string[] = [];
    const onEvent = (event: ServiceEvent) => {
      if (event.kind === "ended") lines.push(event.service);
    };
    const opening = openTestSuite({ isolate, services: ["spaces", "gateway"], port: taken.port, onEvent });
    await expect(opening).rejects.toMatchObject({
      message: expect.stringMatching(/^gateway cannot start: cannot listen on .*: the port is taken/),
      metadata: { service: "gateway" },
    });
    expect(new Set(lines)).toEqual(new Set(["gateway", "spaces"]));
  });
});

describe("a process of several services", () => {
  const stack = new AsyncDisposableStack();
  let suite: TestSuite;
  beforeAll(async () => {
    suite = stack.use(await openTestSuite({ env: plainAgent }));
  });
  afterAll(() => stack.disposeAsync());

  it("BUS-6 that dies is started again where it was, and a run that it held ends well", async () => {
    const before = suite.services[0]?.pid;
    signalProcess({ pid: before }, "SIGKILL");
    const isBack = async () => suite.services[0]?.pid !== before && (await textAt(suite, "healthz")) === "ok\n";
    await until(() => isBack().catch(() => false), { timeoutMs: 30_000, what: "the gateway to be back" });
    const run = await until(
      () => runToEnd(suite.connection, { agent: "plain", text: "again" }).catch(() => undefined),
      { timeoutMs: 30_000, what: "a run to end" },
    );
    expect(run).toMatchObject({ state: RunState.COMPLETED, outputText: "I heard again." });
  });
});

async function takenPort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())) };
}
