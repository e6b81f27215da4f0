// Services that die under a call of an MCP client: it gets its result, or is told, and nothing is executed twice.

import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openNewClient, openOldClient } from "../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";

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
