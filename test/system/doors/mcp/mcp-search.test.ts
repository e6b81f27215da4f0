// An agent's tools found by words, for clients of either era that do not want all of them listed.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { ask, begin, eventsOf, openNewClient, openOldClient, send } from "../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";
import { askWithTasks } from "../fixtures/modern-hand.ts";
import { handOf } from "../fixtures/task-hand.ts";

const path = "/mcp/clerk?search=1";
let door: Door;
beforeAll(async () => {
  door = await openDoor();
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

const clients = { "SDK 1.x": openOldClient, "SDK 2.x": openNewClient };

describe.each(Object.keys(clients) as (keyof typeof clients)[])("DOOR-1 a client of %s that searches", (line) => {
  const open = async (at: string) => {
    const { client, ...opened } = await clients[line]({ url: door.suite.url, key: keys.alice, path: at });
    const call = async (name: string, given: object) => {
      const answer = await client.callTool({ name, arguments: { ...given } });
      return { ...answer, text: (answer.content as { text: string }[])[0]?.text ?? "" };
    };
    return { client, call, ...opened };
  };

  it("is listed four tools, finds one by words, reads how it is called, and calls it", async () => {
    await using all = await open("/mcp/clerk");
    await using one = await open(path);
    const names = (await one.client.listTools()).tools.map(({ name }) => name);
    expect(names.sort()).toEqual(["call_tool", "describe_tools", "list_tools", "search_tools"]);
    expect(one.client.getInstructions()).toMatch(/Work as long as you are told.*search_tools/s);
    const { tools: found } = JSON.parse((await one.call("search_tools", { query: "echoes back the input" })).text);
    expect(found[0]).toEqual({ name: "all__echo", description: expect.any(String) });
    const { tools, unknown } = JSON.parse((await one.call("describe_tools", { names: ["all__echo", "no_such"] })).text);
    const listed = (await all.client.listTools()).tools;
    expect(tools[0]).toMatchObject({
      inputSchema: listed.find(({ name }) => name === "all__echo")?.inputSchema ?? "?",
    });
    expect(unknown).toEqual(["no_such"]);
    const given = { message: "hi" };
    expect((await one.call("call_tool", { name: "all__echo", arguments: given })).text).toBe("Echo: hi");
    expect((await one.call("all__echo", given)).text).toBe("Echo: hi");
    const every = JSON.parse((await one.call("list_tools", {})).text);
    expect(every).toEqual({ names: listed.map(({ name }) => name), total: listed.length, isLast: true });
  });

  it("gets refusals of the agent's policy, forms of MCP and progress as if it had been listed all", async () => {
    await using narrow = await open("/mcp/narrow?search=1");
    const refused = await narrow.call("call_tool", { name: "all__get-sum", arguments: { a: 1, b: 2 } });
    expect(refused).toMatchObject({ isError: true });
    const { tools: hidden } = JSON.parse((await narrow.call("search_tools", { query: "sum of two numbers" })).text);
    expect(hidden.map(({ name }: { name: string }) => name)).not.toContain("all__get-sum");
    await using one = await open(path);
    const place = { location: "New York" };
    const weather = await one.call("call_tool", { name: "all__get-structured-content", arguments: place });
    expect(weather).toMatchObject({ structuredContent: { temperature: expect.any(Number) } });
    await expect(one.call("search_tools", {})).rejects.toThrow(/query/);
    await expect(one.call("call_tool", { arguments: {} })).rejects.toThrow(/name/);
  });
});

it("DOOR-2 a call of a tool that is searched is a task, too, in both forms", async () => {
  const at = { url: door.suite.url, key: keys.alice, path };
  const hand = await handOf(at);
  const searched = (name: string) => ({ name: "call_tool", arguments: { name: "work__work", arguments: { name } } });
  const { task } = await hand.create(searched("searched"));
  expect((await hand.get(task.taskId)).status).toBe("working");
  door.work.end("searched");
  const { result } = await hand.ask("tasks/result", { taskId: task.taskId });
  expect(result.content).toMatchObject([{ text: "searched is done" }]);
  const refused = await hand.ask("tools/call", { ...searched("none"), task: {}, name: "search_tools" });
  expect(refused.error).toMatchObject({ code: -32_602, message: expect.stringContaining("search_tools") });
  const created = await askWithTasks(at, "tools/call", searched("searched later"));
  expect(created.result).toMatchObject({ resultType: "task", status: "working" });
  door.work.end("searched later");
  const isDone = async () =>
    (await askWithTasks(at, "tasks/get", { taskId: created.result.taskId })).result.status === "completed";
  await until(isDone, { timeoutMs: 10_000, what: "the end of the task" });
}, 60_000);

it.each([
  ["a tool that is listed", "/mcp/clerk", (name: string, given: object) => ({ name, arguments: given })],
  [
    "a tool that is searched",
    path,
    (name: string, given: object) => ({ name: "call_tool", arguments: { name, arguments: given } }),
  ],
])("DOOR-1 a call of %s goes on at another gateway, however long its arguments are", async (_, at, paramsOf) => {
  const here = { url: door.suite.url, key: keys.alice, path: at };
  const there = { ...here, url: door.other.url };
  const headers = { "mcp-session-id": await begin(here), "mcp-protocol-version": "2025-11-25" };
  const name = `long ${at}`;
  const params = paramsOf("work__work", { name, pad: "x".repeat(20_000) });
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { ...params, _meta: { progressToken: 1 } } };
  const events = eventsOf(await send(here, call, headers));
  const { value: first } = await events.next();
  await door.work.saw(`began ${name}`);
  await events.return(undefined);
  expect(first!.id.length).toBeLessThan(4_096);
  const again = eventsOf(await ask(there, "GET", { ...headers, "last-event-id": first!.id }));
  await until(async () => JSON.parse((await again.next()).value?.data || "{}").method === "notifications/progress", {
    what: "progress",
  });
  door.work.end(name);
  const rest = (await Array.fromAsync(again)).map(({ data }) => JSON.parse(data || "{}"));
  expect(rest.at(-1)).toMatchObject({ id: 1, result: { content: [{ type: "text", text: `${name} is done` }] } });
  expect(door.work.log.filter((line) => line === `began ${name}`)).toHaveLength(1);
});
