// Two of each service, side by side. The gateway is no queue group: its clients choose one of the pair by its address.

import { Code, ConnectError } from "@connectrpc/connect";
import { Svcm } from "@nats-io/services";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../cli/connection.ts";
import { listServices } from "../../../cli/suite/service-names.ts";
import type { SuiteService } from "../../../cli/suite/services.ts";
import { clientFor } from "../../../services/clients.ts";
import { plainAgent } from "../../harness/agents/plain-run.ts";
import { startLoad } from "../../harness/load.ts";
import { signalProcess } from "../../harness/processes.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const inFlight = 64;
const stack = new AsyncDisposableStack();
let suite: TestSuite;
let bus: Bus;
/** Where each gateway listens, in the order of their starts. */
const gatewayUrls: string[] = [];

beforeAll(async () => {
  const onEvent = (event: { kind: string; service: string; announcement?: Record<string, unknown> }) => {
    if (event.kind === "ready" && event.service === "gateway") gatewayUrls.push(String(event.announcement?.url));
  };
  suite = stack.use(await openTestSuite({ isolate: true, env: plainAgent, onEvent }));
  await Promise.all(listServices().map((service) => suite.start(service)));
  bus = await suite.openBus();
});
afterAll(() => stack.disposeAsync());

/** A cheap call of each service. */
const calls: Record<string, () => Promise<unknown>> = {
  "caller-relay": () => clientFor(bus, CallerService).getDeclaration({ sessionId: "nobody" }).catch(onlyIfRefused),
  "mcp-bridge": () => clientFor(bus, McpServerService).deleteMcpServer({ name: "nothing" }).catch(onlyIfRefused),
  orchestrator: () => clientFor(bus, RunService).getRun({ runId: "nothing" }).catch(onlyIfRefused),
  spaces: () => clientFor(bus, SpaceService).listSpaces({}),
  "tool-router": () => clientFor(bus, AgentService).listAgents({}),
  "worker-pool": () => clientFor(bus, WorkerService).listWorkers({}),
};

describe.each(Object.keys(calls))("BUS-2 two of %s", (service) => {
  const call = () => calls[service]?.() ?? Promise.reject(new Error(`no call of ${service}`));

  it("share the calls: each serves at least a quarter", async () => {
    const before = await servedByInstance(service);
    const load = startLoad(call, inFlight);
    await load.reach(400);
    await load.stop();
    expect(load.failed).toEqual([]);
    const after = await servedByInstance(service);
    const served = [...after].map(([instance, count]) => count - (before.get(instance) ?? 0));
    expect(served).toHaveLength(2);
    const all = served.reduce((sum, count) => sum + count, 0);
    for (const count of served) expect(count / all).toBeGreaterThanOrEqual(0.25);
  });

  it("one is killed in mid-load: only the calls in its hands fail", async () => {
    const [, victim] = pairOf(service);
    const pid = await until(() => victim?.pid, { what: "the victim to run" });
    const load = startLoad(call, inFlight);
    await load.reach(100);
    process.kill(pid, "SIGKILL");
    const killedAtMs = performance.now();
    await load.reach(load.answered + 300);
    await load.stop();
    const codes = load.failed.map(({ error }) => ConnectError.from(error).code);
    expect(codes.filter((code) => code !== Code.Unavailable)).toEqual([]);
    expect(load.failed.length, "it held no more than was in flight").toBeLessThanOrEqual(inFlight);
    const late = load.failed.filter(({ startedAtMs }) => startedAtMs > killedAtMs + 250);
    expect(late, "calls made after its death find the other").toEqual([]);
    await pairIsWhole(service);
  });

  it("what one that is frozen does not answer is read from the other, and what may not be made twice ends", async () => {
    const [victim] = pairOf(service);
    signalProcess({ pid: victim?.pid }, "SIGSTOP"); // it takes calls, and answers none
    const startedAtMs = tickedMs();
    const results = await Promise.all(Array.from({ length: inFlight }, () => call().then(answered, ConnectError.from)));
    expect(tickedMs() - startedAtMs).toBeLessThan(10_000);
    const failed = results.filter((result) => result instanceof ConnectError);
    const isRead = service !== "mcp-bridge"; // of which something is deleted
    expect(failed.map((error) => error.code)).toEqual(isRead ? [] : failed.map(() => Code.Unavailable));
    await expect(call(), "it is asked no more").resolves.not.toThrow();
    signalProcess({ pid: victim?.pid }, "SIGKILL");
    await pairIsWhole(service);
  });
});

describe("two gateways", () => {
  it("one is killed in mid-load: its clients' calls end, the other's go on", async () => {
    const [victim] = pairOf("gateway");
    const agents = gatewayUrls.map((url) => openConnection({ url, apiKey: suite.apiKey }).client(AgentService));
    const loads = agents.map((client) => startLoad(() => client.listAgents({}), inFlight / 2));
    await Promise.all(loads.map((load) => load.reach(200)));
    const count = gatewayUrls.length;
    signalProcess({ pid: victim?.pid }, "SIGKILL");
    const isHit = () => loads.some((load) => load.failed.length > 0);
    await until(isHit, { what: "the victim's clients to notice" });
    const survivor = loads.findIndex((load) => load.failed.length === 0);
    const other = loads[survivor];
    expect(other, "one of the two gateways goes on").toBeDefined();
    await other?.reach(other.answered + 200);
    await Promise.all(loads.map((load) => load.stop()));
    expect(other?.failed).toEqual([]);
    for (const { error } of loads.flatMap((load) => load.failed)) {
      expect([Code.Unavailable, Code.Aborted, Code.Canceled]).toContain(ConnectError.from(error).code);
    }
    await until(() => gatewayUrls.length > count, { timeoutMs: 30_000, what: "the victim to be started again" });
  });
});

async function pairIsWhole(service: string): Promise<void> {
  const isWhole = () => servedByInstance(service).then((served) => served.size === 2);
  await until(isWhole, { timeoutMs: 30_000, what: "the victim to be started again" });
}

const answered = () => "answered" as const;

function pairOf(service: string): SuiteService[] {
  return suite.services.filter((one) => one.service === service);
}

/** How many requests each instance has taken, as `nats micro stats` shows it. */
async function servedByInstance(service: string): Promise<Map<string, number>> {
  const client = new Svcm(bus.connection).client({ strategy: "stall", maxWait: 1_000 });
  const served = new Map<string, number>();
  // An instance that is asked by its own name, too, answers twice under the name of its service.
  for await (const { metadata, endpoints = [] } of await client.stats(service)) {
    const instance = metadata?.instance ?? "";
    const count = endpoints.reduce((sum, endpoint) => sum + endpoint.num_requests, 0);
    served.set(instance, (served.get(instance) ?? 0) + count);
  }
  return served;
}

/** A refusal is an answer too: the call was served. */
function onlyIfRefused(error: unknown): void {
  if (ConnectError.from(error).code === Code.Unavailable) throw error;
}
