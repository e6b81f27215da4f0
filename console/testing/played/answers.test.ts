// What a person writes, while the suite refuses what the page asks beside, or its answer is lost (ORCH-12).

import { Code, ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { delay } from "#runtime/time/delay.ts";
import { left } from "../../../bench/console/played-suite.ts";
import { noCalls, openPlayedStage, queuedRun } from "./stage.ts";

it("an answer stands as it is typed when a poll is refused", async () => {
  let isRefused = false;
  await using stage = await openPlayedStage((router) => {
    router.service(RunService, { watchRun: queuedRun });
    router.service(ToolCallService, {
      listToolCalls() {
        if (isRefused) throw connectError("resource_exhausted", "has its share", { reason: "SHARE_EXCEEDED" });
        const executionType = ExecutionType.SPACE;
        return {
          calls: [{ callId: "c", runId: "run_0", tool: "confirm", state: ToolCallState.WAITING, executionType }],
        };
      },
    });
  });
  const page = await stage.open("runs/run_0");
  await page.getByLabel("Answer").fill("half an ans");
  isRefused = true;
  await page.getByRole("status").getByText("has its share").waitFor();
  isRefused = false;
  await expect.poll(() => page.getByRole("status").textContent()).toBe("");
  expect(await page.getByLabel("Answer").inputValue()).toBe("half an ans");
});

it("an answer that is being written stays when somebody else gives one, and says so", async () => {
  let isWaiting = true;
  let asked = 0;
  await using stage = await openPlayedStage((router) => {
    router.service(ToolCallService, {
      listToolCalls() {
        asked += 1;
        const call = { tool: "confirm", state: ToolCallState.WAITING, executionType: ExecutionType.SPACE };
        return { calls: isWaiting ? ["a", "b"].map((callId) => ({ ...call, callId, agent: callId })) : [] };
      },
    });
  });
  const page = await stage.open("inbox");
  const card = page.getByRole("article").filter({ hasText: "b · since" });
  await card.getByLabel("Answer").fill("half an ans");
  isWaiting = false;
  await page.getByRole("alert").getByText("somebody else has answered").waitFor();
  expect(await card.getByLabel("Answer").inputValue()).toBe("half an ans");
  expect(await card.getByLabel("Answer").evaluate((input) => input === document.activeElement)).toBe(true);
  await page.getByRole("button", { name: "put away" }).click();
  await expect.poll(() => page.getByRole("article").count()).toBe(0);
  const before = asked;
  await page.waitForTimeout(6_500);
  expect(asked - before, "all that a page shows of what waits is asked once").toBeLessThanOrEqual(4);
});

it("an answered call does not come back with what was asked before its answer", async () => {
  let isAnswered = false;
  let asked = 0;
  await using stage = await openPlayedStage((router) => {
    router.service(ToolCallService, {
      async listToolCalls() {
        const calls = isAnswered
          ? []
          : [{ callId: "a", tool: "confirm", state: ToolCallState.WAITING, executionType: ExecutionType.SPACE }];
        asked += 1;
        await delay(asked === 1 ? 0 : 1_500);
        return { calls };
      },
    });
    router.service(SpaceService, {
      answerToolCall() {
        isAnswered = true;
        return {};
      },
    });
  });
  const page = await stage.open("inbox");
  await page.getByLabel("Answer").fill('"yes"');
  await expect.poll(() => asked).toBe(2);
  await page.getByRole("button", { name: "answer", exact: true }).click();
  await page.getByText("Nothing waits for you").waitFor();
  await page.waitForTimeout(2_500);
  expect(asked).toBe(2);
  expect(await page.getByRole("article").count()).toBe(0);
});

it("a question by its link is asked for again at once when it is answered, also while it is asked for", async () => {
  let state: ToolCallState = ToolCallState.WAITING;
  let asked = 0;
  await using stage = await openPlayedStage((router) => {
    router.service(ToolCallService, {
      listToolCalls: () => ({}),
      async getToolCall({ callId }) {
        const call = { callId, tool: "confirm", state, executionType: ExecutionType.SPACE };
        asked += 1;
        await delay(asked === 1 ? 0 : 1_500);
        return { call };
      },
    });
    router.service(SpaceService, {
      answerToolCall() {
        state = ToolCallState.RESOLVED;
        return {};
      },
    });
  });
  const page = await stage.open("inbox/a");
  await page.getByLabel("Answer").fill('"yes"');
  await expect.poll(() => asked).toBe(2);
  await page.getByRole("button", { name: "answer", exact: true }).click();
  await expect.poll(() => state).toBe(ToolCallState.RESOLVED);
  await page.waitForTimeout(2_500);
  expect(asked).toBe(3);
  await page.getByText("nothing is left to answer").waitFor();
});

it("a suite that takes long to say what waits is asked less often", async () => {
  let asked = 0;
  await using stage = await openPlayedStage((router) => {
    router.service(ToolCallService, {
      async listToolCalls() {
        asked += 1;
        await delay(1_500);
        return {};
      },
    });
  });
  const page = await stage.open("inbox");
  await page.getByText("Nothing waits for you").waitFor();
  await page.waitForTimeout(4_500);
  expect(asked).toBe(1);
  await expect.poll(() => asked).toBe(2);
});

it("a message whose answer was lost is the same when it is sent again, and another with other words", async () => {
  const sent: string[][] = [];
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(SpaceService, {
      listSpaces: () => ({ spaces: [{ id: "desk", title: "The desk" }] }),
      async *watchSpace(_request, { signal }) {
        yield { update: { case: "start" as const, value: { nextSequence: 1n } } };
        await left(signal);
      },
      sendMessage({ messageId, content }) {
        sent.push([messageId, String(content[0]?.part.value)]);
        if (sent.length <= 2) throw new ConnectError("cut off after it was stored", Code.Internal);
        return {};
      },
    });
  });
  const page = await stage.open("spaces/desk");
  const send = async (text: string) => {
    const count = sent.length;
    await page.getByLabel("Say something here").fill(text);
    await page.getByRole("button", { name: "send" }).click();
    await expect.poll(() => sent.length).toBe(count + 1);
  };
  for (const text of ["yes", "yes", "no"]) await send(text);
  const [ids, texts] = [sent.map(([id]) => id), sent.map(([, text]) => text)];
  expect(texts).toEqual(["yes", "yes", "no"]);
  expect(ids[1]).toBe(ids[0]);
  expect(ids[2]).not.toBe(ids[0]);
});

it("what is asked once is asked again when the suite was not reached", async () => {
  let asked = 0;
  await using stage = await openPlayedStage((router) => {
    const call = { callId: "c", spaceId: "desk", tool: "confirm", state: ToolCallState.WAITING };
    const executionType = ExecutionType.SPACE;
    router.service(ToolCallService, { listToolCalls: () => ({ calls: [{ ...call, executionType }] }) });
    router.service(SpaceService, {
      getSpace() {
        if (asked++ === 0) throw new ConnectError("cut off", Code.Unavailable);
        return { space: { id: "desk", title: "The desk" } };
      },
    });
  });
  const page = await stage.open("inbox");
  await page.getByRole("link", { name: "The desk" }).waitFor();
});

it("what a server lets choose is chosen by its titles", async () => {
  const heroes = [
    { const: "h1", title: "Superman" },
    { const: "h2", title: "Batman" },
  ];
  const properties = {
    hero: { type: "string", title: "Hero", oneOf: heroes },
    fish: {
      type: "array",
      title: "Fish",
      items: {
        anyOf: [
          { const: "f1", title: "Tuna" },
          { const: "f2", title: "Trout" },
        ],
      },
    },
  };
  const answers: unknown[] = [];
  await using stage = await openPlayedStage((router) => {
    const call = { callId: "c", tool: "elicitation/create", state: ToolCallState.WAITING, question: { callId: "a" } };
    const argumentsJson = JSON.stringify({
      tool: "@shop/order",
      message: "Which?",
      requestedSchema: { type: "object", properties },
    });
    router.service(ToolCallService, {
      listToolCalls: () => ({ calls: answers.length > 0 ? [] : [{ ...call, argumentsJson }] }),
      submitToolResult({ outcome }) {
        answers.push(JSON.parse(String(outcome.value)));
        return {};
      },
    });
  });
  const page = await stage.open("inbox");
  await page.getByText("asked by @shop/order").waitFor({ timeout: 10_000 });
  await page.getByLabel("Hero").selectOption({ label: "Batman" });
  const fish = page.getByRole("group", { name: "Fish" });
  for (const name of ["Trout", "Tuna"]) await fish.getByLabel(name).check();
  await fish.getByLabel("Tuna").uncheck();
  await fish.getByLabel("Tuna").check();
  await fish.getByText("in this order: Trout, Tuna").waitFor();
  await page.getByRole("button", { name: "answer" }).click();
  await page.getByText("Nothing waits for you").waitFor();
  expect(answers).toEqual([{ action: "accept", content: { hero: "h2", fish: ["f2", "f1"] } }]);
});

it("a question in a space is asked in its words there, and declined", async () => {
  const properties = { size: { type: "string", title: "Size", enum: ["small", "large"] } };
  const argumentsJson = JSON.stringify({
    tool: "@shop/order",
    message: "Which size?",
    requestedSchema: { properties },
  });
  const content = {
    case: "tool",
    value: { callId: "c", tool: "elicitation/create", state: 2, argumentsJson },
  } as const;
  const answers: unknown[] = [];
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(SpaceService, {
      listSpaces: () => ({ spaces: [{ id: "desk" }] }),
      async *watchSpace(_request, { signal }) {
        const event = { case: "toolStarted", value: { id: "m", spaceId: "desk", content } } as const;
        yield { update: { case: "event" as const, value: { spaceId: "desk", sequence: 1n, event } } };
        await left(signal);
      },
      answerToolCall({ outcome }) {
        answers.push(JSON.parse(String(outcome.value)));
        return {};
      },
    });
  });
  const page = await stage.open("spaces/desk");
  page.setDefaultTimeout(10_000);
  await page.getByText("Which size?", { exact: true }).waitFor();
  await page.getByLabel("Size").selectOption("large");
  await page.getByRole("button", { name: "answer" }).click();
  await expect.poll(() => answers).toEqual([{ action: "accept", content: { size: "large" } }]);
  await page.getByRole("button", { name: "decline…" }).click();
  await page.getByRole("button", { name: "decline", exact: true }).click();
  await expect.poll(() => answers.at(-1)).toEqual({ action: "decline" });
});
