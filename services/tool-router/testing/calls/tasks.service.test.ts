import { afterAll, beforeAll, expect, test } from "vitest";
import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { createTaskIndex } from "../../subscriptions/calls/task-index.ts";
import { openReader, type Reader } from "../peers/reader.ts";

let suite: Reader;
let left: ReturnType<Reader["clientsOf"]>;
let right: ReturnType<Reader["clientsOf"]>;
beforeAll(async () => {
  suite = await openReader();
  for (const name of ["left", "right"]) suite.use(await suite.startRouter(name, name));
  [left, right] = [suite.clientsOf("left"), suite.clientsOf("right")];
  const sources = [{ name: "files", provider: "mcp", config: { command: "files" } }];
  const tools = { use: ["@files/*"], allowed: { names: ["@files/*"] }, aliases: { rm: "@files/remove_file" } };
  await suite.clients.agents.applyAgent({ agent: { name: "remover", sources, tools } });
}, 60_000);
afterAll(() => suite[Symbol.asyncDispose]());

test("DOOR-2 progress and logs of a call reach who joins it, at another router and by another of its names, too", async () => {
  const sessionId = await suite.openSession("remover");
  const ending = new AbortController();
  suite.mcp.answer = async function* () {
    for (let progress = 1; !ending.signal.aborted; progress += 1) {
      yield { event: { case: "progress", value: { progress } } };
      yield { event: { case: "log", value: { level: LogLevel.INFO, message: "on its way" } } };
      await delay(20, ending.signal).catch(() => {}); // it is to end
    }
    yield { event: { case: "result", value: { outputJson: '"done"' } } };
  };
  const seen = [new Set<string>(), new Set<string>(), new Set<string>()];
  const follow = async (client: typeof left, name: string, told = new Set<string>()) => {
    const last: CallToolResponse["event"][] = [];
    for await (const { event } of client.router.callTool({ sessionId, name, callId: "followed" })) {
      told.add(String(event.case));
      last[0] = event;
    }
    return last[0]?.value;
  };
  const following = [follow(left, "rm", seen[0])];
  await until(() => seen[0]?.has("progress"), { timeoutMs: 20_000, what: "the call" });
  following.push(follow(left, "@files/remove_file", seen[1]), follow(right, "@files/remove_file", seen[2]));
  const areTold = () => seen.every((told) => told.has("progress") && told.has("log"));
  await until(areTold, { timeoutMs: 20_000, what: "progress and logs" });
  ending.abort();
  for (const result of await Promise.all(following)) expect(result).toMatchObject({ outputJson: '"done"' });
  expect(suite.mcp.calls.filter(({ callId }) => callId === "followed")).toHaveLength(1);
}, 60_000);

test("DOOR-2 calls that were asked for as tasks are listed by themselves, in pages, in the order of their creation", async () => {
  const sessionId = await suite.openSession("remover");
  suite.mcp.answer = async function* () {
    yield { event: { case: "result", value: { outputJson: "1" } } };
  };
  const ttl = { seconds: 90n, nanos: 0 };
  for (const callId of ["t-5", "t-3", "t-4", "t-1", "t-2"])
    await left.call({ sessionId, name: "rm", callId, task: { ttl } });
  await left.call({ sessionId, name: "rm", callId: "plain" });
  const ids: string[][] = [];
  for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
    const page = await right.calls.listToolCalls({ onlyTasks: true, sessionId, pageSize: 2, pageToken });
    for (const { task } of page.calls) expect(task?.ttl?.seconds).toBe(90n);
    ids.push(page.calls.map(({ callId }) => callId));
    pageToken = page.nextPageToken || undefined;
  }
  expect(ids).toEqual([["t-5", "t-3"], ["t-4", "t-1"], ["t-2"]]);
  await left.call({ sessionId, name: "rm", callId: "t-3", task: { ttl } });
  const again = await right.calls.listToolCalls({ onlyTasks: true, sessionId });
  expect(
    again.calls.map(({ callId }) => callId),
    "one that is asked for again keeps its place",
  ).toEqual(ids.flat());
  const { nextPageToken: pageToken } = await right.calls.listToolCalls({ onlyTasks: true, pageSize: 1 });
  await expect(right.calls.listToolCalls({ pageToken })).rejects.toThrow(/page_token: /);
}, 60_000);

test("SEC-6 routers make room in the list of tasks at the cost of who has the most", async () => {
  const faults: string[] = [];
  const tasks = createTaskIndex(suite.bus, (fault) => faults.push(fault));
  const idsOf = async (principal: string) => {
    const part = { after: 0, limit: 10_000, signal: new AbortController().signal };
    return (await tasks.read(principal, part)).map(({ callId }) => callId);
  };
  await tasks.add({ principal: "alice", callId: "hers" });
  await shrinkStore(suite.bus, "KV_toolbus_tasks", 32 * 1_024);
  for (let n = 0; faults.length === 0; n += 1) await tasks.add({ principal: "mallory", callId: `his-${n}` });
  const isMade = async () => !(await idsOf("mallory")).includes("his-0");
  await until(isMade, { timeoutMs: 40_000, intervalMs: 500, what: "room" });
  await tasks.add({ principal: "alice", callId: "hers-too" });
  expect(await idsOf("alice")).toEqual(["hers", "hers-too"]);
  expect(faults).toHaveLength(1);
}, 60_000);
