// A stranger on the bus: a third party with the key of its own provider, and the key of one service, each trying everything
// that is not its own. The same attempts with the key of `admin` succeed, so that none is refused for another reason.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { connectOnce } from "#runtime/bus/credentials/connect.ts";
import { readLogin } from "#runtime/bus/credentials/directory.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { issueProviderKey } from "../../../cli/suite/keys/provider-key.ts";
import { clientFor } from "../../../services/clients.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { heard, listening, sending, sent } from "./bus-attempts.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let stranger: NatsConnection;
let worker: NatsConnection;
let admin: NatsConnection;

beforeAll(async () => {
  suite = stack.use(await openTestSuite({ strangers: true }));
  for (const name of ["stranger", "neighbour"]) await issueProviderKey(suite.credentials, name);
  stranger = await signIn("provider.stranger");
  worker = await signIn("worker-pool");
  admin = await signIn("admin");
}, 120_000);
afterAll(() => stack.disposeAsync());

const loginOf = (name: string) => readLogin(suite.credentials, name);

async function signIn(name: string): Promise<NatsConnection> {
  const login = await loginOf(name);
  const connect = () => connectOnce({ url: suite.nats.url, login, name: "attack" }).catch(() => undefined); // not reloaded yet
  const connection = await until(connect, { what: `${name} to be known` });
  stack.defer(() => connection.close());
  return connection;
}

describe("SEC-1 a third party with the key of its provider", () => {
  it.each(heard)("a stranger may not listen to %s", async (subject) => {
    expect(await listening(stranger, subject)).toMatch(/permissions violation.*subscription/i);
    expect(await listening(admin, subject)).toBe("allowed");
  });

  it.each(sent)("a stranger may not send to %s", async (subject) => {
    expect(await sending(stranger, subject)).toMatch(/permissions violation.*publish/i);
  });

  it("is refused by every service as one who sent nothing, at once", async () => {
    const attempts = {
      "tool-router": () => clientFor({ connection: stranger }, AgentService).applyAgent({ agent: { name: "evil" } }),
      "mcp-bridge": () => clientFor({ connection: stranger }, McpServerService).listMcpServers({}),
      spaces: () => clientFor({ connection: stranger }, SpaceService).listSpaces({}),
      orchestrator: () => clientFor({ connection: stranger }, RunService).listRuns({}),
      "worker-pool": () => clientFor({ connection: stranger }, WorkerService).listWorkers({}),
    };
    for (const [process, attempt] of Object.entries(attempts)) {
      const startedAt = tickedMs();
      const error: unknown = await attempt().catch((refusal: unknown) => refusal);
      expect(String(error), process).toContain("permission_denied");
      expect(deliveryOf(error), process).toBe("NOT_SENT");
      expect(tickedMs() - startedAt).toBeLessThan(2_000);
    }
    expect(
      (await clientFor({ connection: admin, login: await loginOf("admin") }, SpaceService).listSpaces({})).spaces,
    ).toEqual([]);
  });

  it("listens to its own subjects and answers whoever asks it, and nobody else", async () => {
    const subject = "toolbus.rpc.stranger.toolbus.provider.v1.ToolProviderService.GetProvidedTools";
    stranger.subscribe(subject, { queue: "stranger", callback: (_, message) => void message.respond("mine") });
    await stranger.flush();
    expect((await admin.request(subject)).string()).toBe("mine");
  });
});

describe("SEC-1 a service with its own key", () => {
  it.each([
    "toolbus.rpc.tool-router.toolbus.agent.v1.AgentService.ApplyAgent",
    "toolbus.rpc.spaces.toolbus.internal.space.v1.ToolMessageService.RecordToolMessage",
    "toolbus.run.run_1",
    "toolbus.audit.tool-router.blocked",
    "$KV.toolbus_agents.agent",
    "$KV.toolbus_subject_tokens.token.somebody",
    "$KV.toolbus_subject_tokens.wanted.somebody",
    "$JS.API.DIRECT.GET.KV_toolbus_subject_tokens",
    "$JS.API.STREAM.MSG.GET.TOOLBUS_RUNS",
    "$JS.API.STREAM.DELETE.TOOLBUS_RUNS",
    "$JS.API.STREAM.UPDATE.KV_toolbus_tools",
  ])("the worker-pool may not send to %s", async (subject) => {
    expect(await sending(worker, subject)).toMatch(/permissions violation.*publish/i);
  });

  it.each(["_INBOX.tool-router.>", "toolbus.rpc.tool-router.>", "toolbus.delta.*", ">"])(
    "the worker-pool may not listen to %s",
    async (subject) => {
      expect(await listening(worker, subject)).toMatch(/permissions violation.*subscription/i);
    },
  );

  it("does what its contract says: the worker-pool asks for an agent's tools", async () => {
    const { tools } = await clientFor(
      { connection: worker, login: await loginOf("worker-pool") },
      ToolService,
    ).listTools({
      scope: { case: "agent", value: "demo" },
    });
    expect(tools.length).toBeGreaterThan(0);
  });

  it("is told in its log which service was refused what", async () => {
    const lines: string[] = [];
    const log = (_details: unknown, text: string) => void lines.push(text);
    const logger = { info: log, warn: log, error: log } as never;
    const config = { natsUrl: suite.nats.url, busCredentials: suite.credentials } as never;
    const context = { name: "worker-pool", instance: "attack", logger } as never;
    await using bus = await openServiceBus(config, context, {});
    bus.connection.publish("toolbus.run.run_1", "attack");
    const refusal = "the bus does not let worker-pool publish to toolbus.run.run_1";
    await until(() => lines.includes(refusal), { what: "the refusal in the log" });
  });

  it("has a seed of its own, which nobody else may read", async () => {
    const names = ["gateway", "orchestrator", "tool-router", "mcp-bridge", "caller-relay", "worker-pool", "spaces"];
    const seeds = await Promise.all(names.map((name) => readFile(join(suite.credentials, `${name}.nk`), "utf8")));
    expect(new Set(seeds).size).toBe(names.length);
  });
});
