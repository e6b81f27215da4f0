// Services that die under a call of an MCP client: it gets its result, or is told, and nothing is executed twice.

import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openTestSuite } from "../../../../harness/suite.ts";
import { openNewClient, openOldClient } from "../../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../../fixtures/door.ts";
import { handOf } from "../../fixtures/task-hand.ts";

let door: Door;

beforeAll(async () => {
  door = await openDoor({ isolate: true });
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

const clients = { "2025-11-25": openOldClient, "2026-07-28": openNewClient };
const deaths = ["tool-router", "mcp-bridge"].flatMap((service) =>
  (["2025-11-25", "2026-07-28"] as const).map((revision) => [service, revision] as const),
);

it.each(deaths)(
  "DOOR-1 %s dies under a call of a client of %s",
  async (service, revision) => {
    const name = `${service} ${revision}`;
    await using one = await clients[revision]({ url: door.suite.url, key: keys.alice });
    const called = one.client.callTool({ name: "work__work", arguments: { name } });
    await door.work.saw(`began ${name}`);
    process.kill(door.suite.services.find((running) => running.service === service)!.pid!, "SIGKILL");
    door.work.end(name);
    const { isError, content } = await called;
    const [{ text = "" } = {}] = content as { text?: string }[];
    if (isError) expect(text).toMatch(/outcome_unknown|unknown/);
    else expect(text).toBe(`${name} is done`);
    expect(door.work.log.filter((line) => line === `began ${name}`)).toHaveLength(1);
    const again = { name: "all__echo", arguments: { message: "again" } };
    const isBack = async () => JSON.stringify((await one.client.callTool(again)).content).includes("Echo: again");
    await until(isBack, {
      timeoutMs: 30_000,
      intervalMs: 200,
      what: `the client's calls after the death of ${service}`,
    });
  },
  90_000,
);

it.each([
  ["", {}],
  [" of large arguments", { padding: "x".repeat(400_000) }],
])(
  "DOOR-2 a task%s whose gateway and router die is told as unknown by another gateway, and not executed again",
  async (of, more) => {
    await using doomed = await openTestSuite(door.gatewayOptions);
    const name = `task${of} without anybody`;
    const call = { name: "work__work", arguments: { name, ...more } };
    const { task } = await (await handOf({ url: doomed.url, key: keys.alice })).create(call);
    await door.work.saw(`began ${name}`);
    process.kill(doomed.services[0]!.pid!, "SIGKILL");
    process.kill(door.suite.services.find(({ service }) => service === "tool-router")!.pid!, "SIGKILL");
    const other = { url: door.other.url, key: keys.alice };
    const hand = await until(() => handOf(other).catch(() => undefined), { timeoutMs: 30_000, intervalMs: 200 });
    const isTold = async () => (await hand.get(task.taskId).catch(() => ({ status: "" }))).status === "failed";
    await until(isTold, { timeoutMs: 30_000, intervalMs: 200, what: "the end of the task" });
    const { result } = await hand.ask("tasks/result", { taskId: task.taskId });
    expect(JSON.stringify(result)).toContain("outcome_unknown");
    expect(door.work.log.filter((line) => line === `began ${name}`)).toHaveLength(1);
  },
  90_000,
);
