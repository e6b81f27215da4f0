// Durable calls as tasks of 2025-11-25: by the client of SDK 1.x, which knows them, by that of SDK 2.x, which is told their shapes, and by hand.

import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  CreateTaskResultSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  TaskStatusNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../../../cli/connection.ts";
import { openTestSuite } from "../../../../harness/suite.ts";
import { openOldClient, type Where } from "../../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../../fixtures/door.ts";
import { handOf } from "../../fixtures/task-hand.ts";

const oldServer = new URL("../../../fixtures/asking/old-server.ts", import.meta.url).pathname;

let door: Door;
let here: Where;
let there: Where;
beforeAll(async () => {
  door = await openDoor();
  here = { url: door.suite.url, key: keys.alice };
  there = { url: door.other.url, key: keys.alice };
  const outputSchemaJson = JSON.stringify({
    ...{ type: "object", required: ["approved"] },
    properties: { approved: { type: "boolean" } },
  });
  const approve = { name: "approve", executionType: ExecutionType.SPACE, outputSchemaJson };
  await door.operator.client(ToolCatalogService).applyCatalogTool({ tool: approve });
  const names = ["@old/*", "approve"];
  const sources = [{ name: "old", provider: "mcp", config: { command: process.execPath, args: [oldServer] } }];
  const model = { provider: "scripted", model: "none.json" };
  const agent = { name: "asker", model, tools: { use: names, allowed: { names } }, sources };
  await door.operator.client(AgentService).applyAgent({ agent });
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

const work = (name: string) => ({ name: "work__work", arguments: { name } });

describe("DOOR-2 clients of SDKs", () => {
  it("1.x: sees the task's creation, its states and its result", async () => {
    await using one = await openOldClient(here);
    expect(one.client.getServerCapabilities()?.tasks).toEqual({
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const { tools } = await one.client.listTools();
    const supportOf = (name: string) => tools.find((tool) => tool.name === name)?.execution?.taskSupport;
    expect([supportOf("work__work"), supportOf("note")]).toEqual(["optional", undefined]);
    const seen: string[] = [];
    const stream = one.client.experimental.tasks.callToolStream(work("stream"), CallToolResultSchema, { task: {} });
    for await (const message of stream) {
      seen.push(message.type);
      if (message.type === "taskCreated") door.work.end("stream");
      if (message.type === "error") throw message.error;
      if (message.type === "result") expect(JSON.stringify(message.result)).toContain("stream is done");
    }
    expect([seen[0], seen.at(-1)]).toEqual(["taskCreated", "result"]);
    expect(seen).toContain("taskStatus");
  }, 60_000);

  it("2.x: gets a task, and its result from another gateway", async () => {
    const opened = async (where: Where) => {
      const client = new ModernClient({ name: "new", version: "1" }, { versionNegotiation: { mode: "legacy" } });
      const requestInit = { headers: { authorization: `Bearer ${where.key}` } };
      await client.connect(new ModernTransport(new URL(`${where.url}/mcp/clerk`), { requestInit }));
      return client;
    };
    const [one, other] = [await opened(here), await opened(there)];
    const created = z.looseObject({ task: z.looseObject({ taskId: z.string(), status: z.string() }) });
    const { task } = await one.request({ method: "tools/call", params: { ...work("modern"), task: {} } }, created);
    expect(task.status).toBe("working");
    door.work.end("modern");
    const params = { taskId: task.taskId };
    const result = await other.request({ method: "tasks/result", params }, z.looseObject({ content: z.unknown() }));
    expect(JSON.stringify(result.content)).toContain("modern is done");
    await Promise.all([one.close(), other.close()]);
  }, 60_000);
});

describe("DOOR-2 a task", () => {
  it("is served by every gateway, in every session of its principal, and by nobody else's", async () => {
    const [mine, other] = [await handOf(here), await handOf(there)];
    const foreigners = [keys.mallory, "the-key-of-olga-herself"]; // an operator's is none, either
    const { task } = await mine.create(work("shared"));
    const { taskId } = task;
    await door.work.saw("began shared");
    expect(await other.get(taskId)).toMatchObject({ taskId, status: "working", pollInterval: expect.any(Number) });
    for (const key of foreigners) {
      const foreign = await handOf({ ...there, key });
      for (const method of ["tasks/get", "tasks/result", "tasks/cancel"])
        expect((await foreign.ask(method, { taskId })).error, method).toMatchObject({ code: -32_602 });
      expect(await foreign.listed()).not.toContain(taskId);
    }
    expect((await other.get(taskId)).status, "what others asked has changed nothing").toBe("working");
    const waiting = other.ask("tasks/result", { taskId });
    door.work.end("shared");
    const { result } = await waiting;
    expect(result.content).toEqual([{ type: "text", text: "shared is done" }]);
    expect(result._meta["io.modelcontextprotocol/related-task"]).toEqual({ taskId });
    expect(await mine.get(taskId)).toMatchObject({ status: "completed" });
    expect(await other.listed()).toContain(taskId);
    expect((await mine.ask("tasks/result", { taskId })).result, "as often as it is asked for").toEqual(result);
    expect((await mine.ask("tasks/get", { taskId: "no such/task" })).error?.code).toBe(-32_602);
    expect((await mine.ask("tasks/list", { cursor: "none" })).error?.code).toBe(-32_602);
  }, 60_000);

  it("goes on when the gateway that created it is killed, and is executed once", async () => {
    await using doomed = await openTestSuite(door.gatewayOptions);
    const { task } = await (await handOf({ ...here, url: doomed.url })).create(work("orphan"));
    process.kill(doomed.services[0]!.pid!, "SIGKILL");
    await door.work.saw("began orphan");
    const other = await handOf(there);
    expect((await other.get(task.taskId)).status).toBe("working");
    door.work.end("orphan");
    const { result } = await other.ask("tasks/result", { taskId: task.taskId });
    expect(result.content).toEqual([{ type: "text", text: "orphan is done" }]);
    expect(door.work.log.filter((line) => line === "began orphan")).toHaveLength(1);
  }, 90_000);

  it("tells who waits for its result, at whichever gateway, of its states, its progress and its log", async () => {
    const mine = await handOf(here);
    await using one = await openOldClient(here);
    await using other = await openOldClient(there);
    const logging = { name: "work__work", arguments: { name: "watched", logs: true } };
    const { taskId } = (await mine.create(logging)).task;
    const logs = new Set<unknown>();
    await other.client.setLoggingLevel("info");
    other.client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.add(params.data));
    const states = [one, other].map(({ client }) => {
      const seen: unknown[] = [];
      client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => void seen.push(params));
      return seen;
    });
    const told: number[][] = [];
    const waiting = [one, other].map(({ client }, index) => {
      const steps: number[] = [];
      told[index] = steps;
      const onprogress = ({ progress }: { progress: number }) => void steps.push(progress);
      return client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, { onprogress, timeout: 60_000 });
    });
    await until(() => told.every((steps) => steps.length > 2), { timeoutMs: 20_000, what: "the task's progress" });
    for (const steps of told) expect(steps).toEqual(steps.toSorted((before, after) => before - after));
    await until(() => logs.size > 0, { timeoutMs: 20_000, what: "the task's log" });
    expect([...logs]).toEqual(["info of watched"]);
    door.work.end("watched");
    for (const { content } of await Promise.all(waiting)) expect(JSON.stringify(content)).toContain("watched is done");
    for (const seen of states)
      expect(seen).toMatchObject(["working", "completed"].map((status) => ({ taskId, status })));
  }, 60_000);

  it("is the same one if its request is sent again, to another gateway", async () => {
    const mine = await handOf(here);
    const [first, again] = [await mine.create(work("twice"), 7), await mine.at(there).create(work("twice"), 7)];
    expect(again.task.taskId).toBe(first.task.taskId);
    door.work.end("twice");
    await mine.ask("tasks/result", { taskId: first.task.taskId });
    expect(door.work.log.filter((line) => line === "began twice")).toHaveLength(1);
  }, 60_000);

  it("is canceled at its server, from another gateway, and only as long as it has not ended", async () => {
    const [mine, other] = [await handOf(here), await handOf(there)];
    const { taskId } = (await mine.create(work("long"))).task;
    await door.work.saw("began long");
    const { result } = await other.ask("tasks/cancel", { taskId });
    expect(result).toMatchObject({ taskId, status: "cancelled" });
    await door.work.saw("canceled long");
    expect(await mine.get(taskId)).toMatchObject({ status: "cancelled" });
    expect((await mine.ask("tasks/result", { taskId })).result.isError).toBe(true);
    expect((await mine.ask("tasks/cancel", { taskId })).error?.code).toBe(-32_602);
  }, 60_000);

  it("is kept as long as its client asks, as far as the suite keeps it, and says how long that is", async () => {
    const [mine, other] = [await handOf(here), await handOf(there)];
    const asked = async (name: string, ttl: number | undefined, id: number) =>
      (await mine.create(work(name), id, ttl === undefined ? {} : { ttl })).task;
    const [short, long, most, plain] = [
      await asked("short", 1, 8),
      await asked("long", 7_200_000, 9),
      await asked("most", 1e15, 10),
      await asked("plain", undefined, 11),
    ];
    const days = 30 * 24 * 3_600_000;
    expect([short.ttl, long.ttl, most.ttl, plain.ttl]).toEqual([1, 7_200_000, days, days]);
    expect((await other.get(short.taskId)).status, "what has not ended is there in any case").toBe("working");
    for (const name of ["short", "long", "most", "plain"]) door.work.end(name);
    for (const { taskId } of [long, most, plain]) {
      await mine.ask("tasks/result", { taskId });
      const { status, ttl, createdAt, lastUpdatedAt } = await other.get(taskId);
      expect(status).toBe("completed");
      expect(ttl, "an hour after it has ended").toBe(Date.parse(lastUpdatedAt) - Date.parse(createdAt) + 3_600_000);
    }
    const isGone = async () => (await other.ask("tasks/get", { taskId: short.taskId })).error?.code === -32_602;
    await until(isGone, { timeoutMs: 20_000, intervalMs: 100, what: "the end of the task that nobody wants" });
    const listed = await mine.listed();
    expect(listed).toEqual(expect.arrayContaining([long.taskId, most.taskId, plain.taskId]));
    expect(listed).not.toContain(short.taskId);
    expect((await mine.ask("tools/call", { ...work("short"), task: { ttl: -1 } })).error?.code).toBe(-32_602);
    expect((await mine.create(work("short"), 8)).task.taskId, "and it is not executed again").toBe(short.taskId);
    expect(door.work.log.filter((line) => line === "began short")).toHaveLength(1);
  }, 60_000);

  it("is not made of a call that is not recorded, or not made", async () => {
    const mine = await handOf(here);
    const note = { name: "note", arguments: { text: "hi" } };
    expect((await mine.ask("tools/call", { ...note, task: {} })).error).toMatchObject({ code: -32_601 });
    const faulty = { name: "work__work", arguments: { name: 3 } };
    expect((await mine.ask("tools/call", { ...faulty, task: {} })).error).toMatchObject({ code: -32_602 });
    expect((await mine.ask("tools/call", note)).result.content).toBeDefined();
  }, 60_000);
});

describe("DOOR-2 a task that waits for people", () => {
  const capabilities = { elicitation: { form: {} } };

  it("asks the person of its client, by the SDK 1.x", async () => {
    const client = new Client({ name: "old", version: "1" }, { capabilities });
    const answered = { city: "Rome", seats: 3 };
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      expect(params._meta?.["io.modelcontextprotocol/related-task"]).toBeDefined();
      return { action: "accept", content: answered };
    });
    const requestInit = { headers: { authorization: `Bearer ${keys.alice}` } };
    const transport = new StreamableHTTPClientTransport(new URL(`${here.url}/mcp/asker`), { requestInit });
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    const params = { name: "old__book", arguments: {} };
    const { task } = await client.request(
      { method: "tools/call", params: { ...params, task: {} } },
      CreateTaskResultSchema,
    );
    const { tasks } = client.experimental;
    const isAsking = async () => (await tasks.getTask(task.taskId)).status === "input_required";
    await until(isAsking, { timeoutMs: 20_000, intervalMs: 100, what: "the question" });
    const result = await tasks.getTaskResult(task.taskId, CallToolResultSchema);
    expect(JSON.stringify(result.content)).toContain("Rome");
    expect((await tasks.getTask(task.taskId)).status).toBe("completed");
    await client.close();
  }, 60_000);

  it("waits in the space for an approval, after its gateway was killed, and is told as working to who cannot answer", async () => {
    await using doomed = await openTestSuite(door.gatewayOptions);
    const path = "/mcp/asker";
    const mine = await handOf({ ...here, url: doomed.url, path }, capabilities);
    const owner = openConnection({ url: door.suite.url, apiKey: keys.alice });
    const member = { case: "agent", value: { sessionId: mine.sessionId, agent: "asker" } } as const;
    await owner.client(SpaceService).createSpace({ spaceId: "hall-of-tasks" });
    await owner.client(SpaceService).enterSpace({ spaceId: "hall-of-tasks", member });
    const { taskId } = (await mine.create({ name: "approve", arguments: {} })).task;
    process.kill(doomed.services[0]!.pid!, "SIGKILL");
    expect((await (await handOf({ ...there, path })).get(taskId)).status).toBe("working");
    expect((await (await handOf({ ...there, path }, capabilities)).get(taskId)).status).toBe("input_required");
    const { call } = await owner.client(ToolCallService).getToolCall({ callId: taskId });
    expect(call?.state).toBe(ToolCallState.WAITING);
    const outcome = { case: "resultJson", value: JSON.stringify({ approved: true }) } as const;
    await owner.client(ToolCallService).submitToolResult({ callId: taskId, outcome });
    const { result } = await (await handOf({ ...there, path })).ask("tasks/result", { taskId });
    expect(result.structuredContent).toEqual({ approved: true });
    await owner.client(SessionService).closeSession({ sessionId: mine.sessionId });
    expect((await (await handOf({ ...there, path })).get(taskId)).status, "beyond its session").toBe("completed");
  }, 90_000);
});
