// One run: what leads from it and to it, and what of it is shown when it is much (ORCH-12).

import { readFile } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { left } from "../../../bench/console/played-suite.ts";
import { logFileFrom } from "../../runs/timeline/log-file.ts";
import { noCalls, openPlayedStage, quietRuns } from "./stage.ts";

const createTime = timestampFromMs(Date.now());
const eventOf = (runId: string, sequence: number, event: object) => ({
  update: { case: "event" as const, value: { runId, sequence, createTime, event: event as never } },
});

function serveNothingElse(router: ConnectRouter): void {
  noCalls(router);
  router.service(AuditService, { listAuditEvents: () => ({}) });
}

it("leads to the run of a sub-agent that it called, and back", async () => {
  const parent = { runId: "run_up", callId: "call_1", depth: 1 };
  const asked: object[] = [];
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(RunService, {
      listRuns({ agent, pageToken }) {
        asked.push({ agent });
        if (pageToken === "")
          return { runs: [{ id: "run_other", parent: { ...parent, callId: "x" } }], nextPageToken: "more" };
        return { runs: [{ id: "run_down", parent }] };
      },
      async *watchRun({ runId }, { signal }) {
        const isUp = runId === "run_up";
        yield eventOf(runId, 0, { case: "accepted", value: isUp ? { agent: "chief" } : { agent: "lead", parent } });
        yield eventOf(runId, 1, { case: "claimed", value: {} });
        const value = { callId: "call_1", name: "agent_lead" };
        if (isUp)
          yield eventOf(runId, 2, {
            case: "turnCommitted",
            value: { turn: 1, items: [{ item: { case: "functionCall", value } }] },
          });
        await left(signal);
      },
    });
  });
  const page = await stage.open("runs/run_up");
  await page.getByRole("button", { name: "agent_lead" }).click();
  await page.getByRole("link", { name: "run_down" }).click({ timeout: 10_000 });
  await page.getByRole("heading", { name: "Run of lead" }).waitFor();
  await page.getByRole("link", { name: "run_up" }).click({ timeout: 10_000 });
  await page.getByRole("heading", { name: "agent_lead" }).waitFor();
  expect(asked).toContainEqual({ agent: "lead" });
});

it("looks for the run of an open call every ten seconds, and never again when it is found", async () => {
  const parent = { runId: "run_up", callId: "call_1", depth: 1 };
  let asked = 0;
  let isThere = false;
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(RunService, {
      listRuns() {
        asked += 1;
        return { runs: isThere ? [{ id: "run_down", parent }] : [] };
      },
      async *watchRun({ runId }, { signal }) {
        yield eventOf(runId, 0, { case: "accepted", value: { agent: "chief" } });
        const value = { callId: "call_1", name: "agent_lead" };
        const items = [{ item: { case: "functionCall", value } }];
        yield eventOf(runId, 1, { case: "turnCommitted", value: { turn: 1, items } });
        await left(signal);
      },
    });
  });
  const page = await stage.open("runs/run_up");
  const call = page.getByRole("button", { name: "agent_lead" });
  await call.waitFor();
  await page.clock.install();
  await call.click();
  await expect.poll(() => asked).toBe(1);
  await page.clock.runFor(8_000);
  expect(asked, "a list of runs may be long").toBe(1);
  isThere = true;
  await page.clock.runFor(3_000);
  await page.getByRole("link", { name: "run_down" }).waitFor();
  await page.clock.runFor(11_000);
  expect(asked).toBe(2);
});

it("is forked under another key after another event", async () => {
  const forks: { atSequence: number; idempotencyKey: string }[] = [];
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(RunService, {
      async *watchRun({ runId }) {
        yield eventOf(runId, 0, { case: "accepted", value: { agent: "clerk" } });
        yield eventOf(runId, 1, { case: "claimed", value: {} });
        yield eventOf(runId, 2, { case: "ended", value: { state: RunState.COMPLETED } });
      },
      forkRun({ atSequence, idempotencyKey }) {
        forks.push({ atSequence, idempotencyKey });
        throw new ConnectError("cut off after it was stored", Code.Internal);
      },
    });
  });
  const page = await stage.open("runs/run_0");
  const fork = async () => {
    const count = forks.length;
    await page.getByRole("button", { name: "fork" }).click();
    await expect.poll(() => forks.length).toBe(count + 1);
    await page.getByRole("alert").getByText("cut off").waitFor();
  };
  await fork();
  await fork();
  await page.getByRole("button", { name: "queued" }).click();
  await fork();
  expect(forks.map(({ atSequence }) => atSequence)).toEqual([2, 2, 1]);
  const [first, again, other] = forks.map(({ idempotencyKey }) => idempotencyKey);
  expect(again).toBe(first);
  expect(other, "the key of one request is refused for another").not.toBe(first);
});

it("is forked once by who asks again while it goes on; other words fork it from where it is then", async () => {
  const forks: { atSequence: number; idempotencyKey: string }[] = [];
  const goingOn = Promise.withResolvers<void>();
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(RunService, {
      async *watchRun({ runId }, { signal }) {
        yield eventOf(runId, 0, { case: "accepted", value: { agent: "clerk" } });
        yield eventOf(runId, 1, { case: "claimed", value: {} });
        await goingOn.promise;
        yield eventOf(runId, 2, { case: "turnCommitted", value: { turn: 1 } });
        await left(signal);
      },
      forkRun({ atSequence, idempotencyKey }) {
        forks.push({ atSequence, idempotencyKey });
        throw new ConnectError(`answer ${forks.length} was lost`, Code.Internal);
      },
    });
  });
  const page = await stage.open("runs/run_0");
  const fork = async (count: number) => {
    await page.getByRole("button", { name: "fork" }).click();
    await page.getByText(`answer ${count} was lost`).waitFor();
  };
  await page.getByText("Fork after event 1,").waitFor();
  await fork(1);
  goingOn.resolve();
  await page.getByText("after event 2 of 2").waitFor();
  await page.getByText("Fork after event 1,").waitFor();
  await fork(2);
  await page.getByLabel("Fork after event").fill("Go on.");
  await page.getByText("Fork after event 2,").waitFor();
  await fork(3);
  expect(forks.map(({ atSequence }) => atSequence)).toEqual([1, 1, 2]);
  const [first, again, other] = forks.map(({ idempotencyKey }) => idempotencyKey);
  expect(again).toBe(first);
  expect(other).not.toBe(first);
});

it("shows the beginning of an answer that is large, and all of it when asked", async () => {
  const outputText = "All of it. ".repeat(200_000);
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(RunService, {
      async *watchRun({ runId }) {
        yield eventOf(runId, 0, { case: "accepted", value: { agent: "clerk" } });
        yield eventOf(runId, 1, { case: "claimed", value: {} });
        const end = { state: RunState.COMPLETED, endReason: RunEndReason.FINAL_ANSWER, outputText };
        yield eventOf(runId, 2, { case: "ended", value: end });
      },
    });
  });
  const page = await stage.open("runs/run_0");
  const answer = page.locator(".answer");
  await answer.waitFor();
  expect((await answer.textContent())?.length).toBeLessThan(50_000);
  await page.getByRole("button", { name: "show all 2,200,000 characters" }).click();
  await expect.poll(async () => (await answer.textContent())?.length).toBe(outputText.length);
});

it("that has ended waits for nobody, whatever was told last", async () => {
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(ToolCallService, {
      listToolCalls: () => ({
        calls: ["run_0", "run_1"].map((runId) => ({
          callId: runId,
          runId,
          tool: "confirm",
          state: ToolCallState.WAITING,
        })),
      }),
    });
    router.service(RunService, {
      async *watchRun({ runId }) {
        yield eventOf(runId, 0, { case: "accepted", value: { agent: "clerk" } });
        if (runId === "run_0") yield eventOf(runId, 1, { case: "ended", value: { state: RunState.CANCELED } });
        await left(AbortSignal.timeout(60_000));
      },
    });
  });
  const page = await stage.open("runs/run_1");
  page.setDefaultTimeout(10_000);
  await page.getByRole("article", { name: "confirm waits" }).waitFor();
  await page.goto(page.url().replace("run_1", "run_0"));
  await page.getByText("canceled").first().waitFor();
  expect(await page.getByRole("article").count()).toBe(0);
});

it("has the whole of a result saved whose beginning alone it holds", async () => {
  const result = { outputJson: '{"truncated":true}', storedReference: "call.sha256-1" };
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(ToolCallService, {
      async *readResult({ result }) {
        expect(result).toEqual({ case: "storedReference", value: "call.sha256-1" });
        for (const text of ["[1,", "2]"])
          yield { part: { case: "chunk" as const, value: { data: Buffer.from(text) } } };
      },
    });
    router.service(RunService, {
      async *watchRun({ runId }) {
        yield eventOf(runId, 0, { case: "accepted", value: { agent: "clerk" } });
        yield eventOf(runId, 1, { case: "callStarted", value: { callId: "call", tool: "rows" } });
        yield eventOf(runId, 2, { case: "callFinished", value: { callId: "call", result } });
        yield eventOf(runId, 3, { case: "ended", value: { state: RunState.COMPLETED } });
      },
    });
  });
  const page = await stage.open("runs/run_0?span=call");
  page.setDefaultTimeout(10_000);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "save the whole result" }).click();
  expect(await readFile(await (await saved).path(), "utf8")).toBe("[1,2]");
});

it("asks the suite nothing about a log that was opened from a file", async () => {
  let asked = 0;
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(RunService, {
      watchRuns: quietRuns,
      listRuns({ agent }) {
        asked += agent === "lead" ? 1 : 0;
        return {};
      },
    });
  });
  const result = { outputJson: "{}", storedReference: "call.sha256-1" };
  const log = [
    eventOf("run_0", 0, { case: "accepted", value: { agent: "clerk" } }),
    eventOf("run_0", 1, { case: "callStarted", value: { callId: "call", tool: "agent_lead" } }),
    eventOf("run_0", 2, { case: "callFinished", value: { callId: "call", result } }),
  ].map(({ update: { value } }) => create(RunEventSchema, value));
  const page = await stage.open("runs");
  page.setDefaultTimeout(10_000);
  const buffer = Buffer.from(JSON.stringify(logFileFrom(log)));
  await page.getByLabel("open a log…").setInputFiles({ name: "run.json", mimeType: "", buffer });
  await page.getByRole("heading", { name: "Run of clerk" }).waitFor();
  await page.goto(`${page.url()}?span=call`);
  await page.getByText("call.sha256-1").waitFor();
  await page.waitForTimeout(500);
  expect(asked).toBe(0);
  expect(await page.getByRole("button", { name: "save the whole result" }).count()).toBe(0);
});

it("is not exported in part when its stream is cut off", async () => {
  await using stage = await openPlayedStage((router) => {
    serveNothingElse(router);
    router.service(RunService, {
      watchRuns: quietRuns,
      listRuns: () => ({
        runs: [{ id: "run_0", agent: "clerk", state: RunState.COMPLETED, lastSequence: 2, createTime }],
      }),
      async *watchRun({ runId }) {
        yield eventOf(runId, 0, { case: "accepted", value: { agent: "clerk" } });
      },
    });
  });
  const page = await stage.open("runs");
  page.setDefaultTimeout(10_000);
  await page.getByLabel("choose run run_0").check();
  await page.getByRole("button", { name: "export" }).click();
  await page.getByRole("alert").getByText("the log of run_0 was cut off").waitFor();
});
