// Durable calls as tasks of 2026-07-28's extension, by hand: no SDK has a client of it.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openTestSuite } from "../../../../harness/suite.ts";
import { openAskingServer } from "../../../fixtures/asking/modern-server.ts";
import type { Where } from "../../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../../fixtures/door.ts";
import { askWithTasks as ask, declared, listenWithTasks as listen } from "../../fixtures/modern-hand.ts";

const stack = new AsyncDisposableStack();
let door: Door;
let here: Where;
let there: Where;
beforeAll(async () => {
  door = stack.use(await openDoor());
  const asking = stack.use(await openAskingServer());
  here = { url: door.suite.url, key: keys.alice };
  there = { url: door.other.url, key: keys.alice };
  const model = { provider: "scripted", model: "none.json" };
  const sources = [{ name: "new", provider: "mcp", config: { url: asking.url } }];
  const agent = { name: "asker", model, tools: { use: ["@new/*"], allowed: { names: ["@new/*"] } }, sources };
  await door.operator.client(AgentService).applyAgent({ agent });
}, 120_000);
afterAll(() => stack.disposeAsync());

const work = (name: string) => ({ name: "work__work", arguments: { name } });

describe("DOOR-2 a task of the extension", () => {
  it("is listened to by nobody who does not declare it, and polled by whoever does", async () => {
    const asked = { notifications: { taskIds: ["any"] } };
    const undeclared = await ask(here, "subscriptions/listen", asked, {});
    expect(undeclared.error).toMatchObject({ code: -32_021, data: { requiredCapabilities: declared } });
    expect((await ask(here, "subscriptions/listen", asked)).error).toBeUndefined();
  });

  it("is what a call becomes that takes longer than a moment, for clients that declare it", async () => {
    expect((await ask(here, "server/discover", {})).result.capabilities.extensions).toEqual(declared.extensions);
    door.work.end("short");
    const short = await ask(here, "tools/call", work("short"));
    expect(short.result).toMatchObject({ resultType: "complete", content: [{ text: "short is done" }] });
    const plain = ask(here, "tools/call", work("plain"), {});
    await door.work.saw("began plain");
    const { result } = await ask(here, "tools/call", work("long"));
    expect(result).toMatchObject({ resultType: "task", status: "working", ttlMs: expect.any(Number) });
    door.work.end("plain");
    expect((await plain).result).toMatchObject({ resultType: "complete", content: [{ text: "plain is done" }] });
    const { taskId } = result;
    expect((await ask(there, "tasks/get", { taskId })).result).toMatchObject({
      resultType: "complete",
      status: "working",
    });
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const given = { taskId, ...(method === "tasks/update" && { inputResponses: {} }) };
      expect((await ask({ ...there, key: keys.mallory }, method, given)).error, method).toMatchObject({
        code: -32_602,
      });
      expect((await ask(there, method, given, {})).error, method).toMatchObject({
        ...{ code: -32_021, data: { requiredCapabilities: declared } },
      });
    }
    door.work.end("long");
    const ended = await until(() => endOf(there, taskId), { timeoutMs: 20_000, intervalMs: 100 });
    expect(ended).toMatchObject({ status: "completed", result: { content: [{ text: "long is done" }] } });
  }, 60_000);

  it("is told of to who listens, at whichever gateway, as it is polled for, until its end", async () => {
    const { taskId } = (await ask(here, "tools/call", work("told"))).result;
    const notifications = { taskIds: [taskId, "no-such-task"] };
    const stream = await listen(there, notifications);
    expect((await stream.next()).value).toMatchObject({
      ...{ method: "notifications/subscriptions/acknowledged", params: { notifications: { taskIds: [taskId] } } },
    });
    const working = (await stream.next()).value;
    expect(working).toMatchObject({ method: "notifications/tasks", params: { taskId, status: "working" } });
    expect(working.params._meta).toEqual({ "io.modelcontextprotocol/subscriptionId": 1 });
    door.work.end("told");
    const { _meta, ...completed } = (await stream.next()).value.params;
    expect(completed).toMatchObject({ taskId, status: "completed", result: { content: [{ text: "told is done" }] } });
    const { resultType, _meta: own, ...polled } = (await ask(here, "tasks/get", { taskId })).result;
    expect(completed).toEqual(polled);
    await stream.return(undefined);
    const foreign = await ask({ ...there, key: keys.mallory }, "subscriptions/listen", { notifications });
    expect(foreign, "the stream of nothing ends").toMatchObject({ result: { resultType: "complete" } });
    const both = await listen(here, { taskIds: [taskId], toolsListChanged: true });
    const { params } = (await both.next()).value;
    expect(params.notifications).toEqual({ taskIds: [taskId], toolsListChanged: true });
    expect((await both.next()).value.params.status).toBe("completed");
    await both.return(undefined);
    const many = Array.from({ length: 101 }, (_, index) => `task-${index}`);
    expect((await ask(here, "subscriptions/listen", { notifications: { taskIds: many } })).error?.code).toBe(-32_602);
  }, 60_000);

  it("goes on when its gateway is killed, and is executed once", async () => {
    await using doomed = await openTestSuite(door.gatewayOptions);
    const { taskId } = (await ask({ ...here, url: doomed.url }, "tools/call", work("orphan"))).result;
    process.kill(doomed.services[0]!.pid!, "SIGKILL");
    expect((await ask(there, "tasks/get", { taskId })).result.status).toBe("working");
    door.work.end("orphan");
    const ended = await until(() => endOf(there, taskId), { timeoutMs: 20_000, intervalMs: 100 });
    expect(ended.result.content).toEqual([{ type: "text", text: "orphan is done" }]);
    expect(door.work.log.filter((line) => line === "began orphan")).toHaveLength(1);
  }, 90_000);

  it("is none if its client leaves before it is told of it: that cancels", async () => {
    const client = new AbortController();
    const left = ask(here, "tools/call", work("left"), declared, client.signal);
    await door.work.saw("began left");
    client.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    await door.work.saw("canceled left");
  }, 60_000);

  it("is canceled at its server", async () => {
    const { taskId } = (await ask(here, "tools/call", work("canceled"))).result;
    expect((await ask(there, "tasks/cancel", { taskId })).result).toMatchObject({ resultType: "complete" });
    await door.work.saw("canceled canceled");
    const ended = await until(() => endOf(there, taskId), { timeoutMs: 20_000, intervalMs: 100 });
    expect(ended.status).toBe("cancelled");
  }, 60_000);

  it("asks in its state, and goes on by what is brought to another gateway", async () => {
    const [asker, other] = [here, there].map((where) => ({ ...where, path: "/mcp/asker" })) as [Where, Where];
    const capabilities = { ...declared, elicitation: { form: {}, url: {} } };
    const { result } = await ask(asker, "tools/call", { name: "new__book", arguments: {} }, capabilities);
    expect(result.resultType).toBe("task");
    const { taskId } = result;
    const asked = async () => {
      const state = (await ask(other, "tasks/get", { taskId }, capabilities)).result;
      return state.status === "input_required" ? Object.keys(state.inputRequests) : undefined;
    };
    const [where = ""] = await until(asked, { timeoutMs: 20_000, intervalMs: 100 });
    const accepted = {
      [where]: { action: "accept", content: { city: "Oslo", seats: 1 } },
      unknown: { action: "accept" },
    };
    await ask(other, "tasks/update", { taskId, inputResponses: accepted }, capabilities);
    const isNext = async () => (await asked())?.find((name) => name !== where);
    const sign = await until(isNext, { timeoutMs: 20_000, intervalMs: 100 });
    await ask(asker, "tasks/update", { taskId, inputResponses: { [sign]: { action: "accept" } } }, capabilities);
    const ended = await until(() => endOf(other, taskId), { timeoutMs: 20_000, intervalMs: 100 });
    expect(JSON.stringify(ended.result)).toContain("Oslo");
  }, 60_000);
});

async function endOf(where: Where, taskId: string) {
  const { result } = await ask(where, "tasks/get", { taskId });
  return ["completed", "cancelled", "failed"].includes(result.status) && result;
}
