// What operators do in the console with many runs, with tools that changed, and with what agents keep (ORCH-12).

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openStage, type Stage } from "./stage.ts";

const stack = new AsyncDisposableStack();
let stage: Stage;
beforeAll(async () => {
  stage = stack.use(await openStage());
});
afterAll(() => stack.disposeAsync());

const runs = () => stage.suite.connection.client(RunService);
const isIn = async (runId: string, state: RunState) => (await runs().getRun({ runId })).run?.state === state;
const rows = (page: Page) => page.locator(".run-row");

describe("many runs", () => {
  let shops: string[];
  beforeAll(async () => {
    shops = [await stage.run("shop", "1"), await stage.run("shop", "2")];
    const clerk = await stage.run("clerk", "3");
    for (const id of shops) await until(() => isIn(id, RunState.IN_PROGRESS));
    await until(() => isIn(clerk, RunState.COMPLETED));
  });

  it("are narrowed by agent, tool and time, which the address keeps", async () => {
    const page = await stage.open("#/runs");
    await expect.poll(() => rows(page).count()).toBe(3);
    await page.getByLabel("Agent").fill("clerk");
    await page.getByLabel("Agent").press("Enter");
    await expect.poll(() => rows(page).count()).toBe(1);
    await page.getByLabel("Agent").fill("");
    await page.getByLabel("Agent").press("Enter");
    await page.getByLabel("Tool").fill("everything__get-sum");
    await page.getByLabel("Tool").press("Enter");
    await expect.poll(() => rows(page).count()).toBe(2); // as soon as it is called
    await page.getByLabel("Accepted").selectOption("in the last hour");
    await page.reload();
    await expect.poll(() => rows(page).count()).toBe(2);
    await page.context().close();
  });

  it("are exported as a line each, run again, and canceled at once", async () => {
    const page = await stage.open("#/runs?agent=shop");
    await expect.poll(() => rows(page).count()).toBe(2);
    for (const id of shops) await page.getByLabel(`choose run ${id}`).check();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "export" }).click();
    const file = { name: "runs.jsonl", mimeType: "", buffer: await readFile(await (await saved).path()) };
    const lines = file.buffer.toString().split("\n");
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(JSON.parse(line).events.length).toBeGreaterThan(3);
    await page.getByLabel("open a log…").setInputFiles(file);
    for (const id of shops) {
      await page.getByRole("combobox", { name: /^Run/ }).selectOption(id);
      await page.locator(".asked", { hasText: `${shops.indexOf(id) + 1}` }).waitFor();
    }
    await page.goto(page.url().replace(/#.*/, "#/runs?agent=shop"));
    for (const id of shops) await page.getByLabel(`choose run ${id}`).check();

    await page.getByRole("button", { name: "run again" }).click();
    await expect.poll(() => rows(page).count()).toBe(4);
    const again = (await runs().listRuns({ agent: "shop" })).runs.filter(({ id }) => !shops.includes(id));
    expect(again.map(({ fork }) => fork?.runId).toSorted()).toEqual(shops.toSorted());

    for (const id of shops) await page.getByLabel(`choose run ${id}`).check();
    await page.getByRole("button", { name: "cancel 2 runs" }).click();
    for (const id of shops) await expect.poll(() => isIn(id, RunState.CANCELED)).toBe(true);
    await page.context().close();
  });
});

const turncoat = fileURLToPath(new URL("../../test/system/security/turncoat-server.ts", import.meta.url));

it("SEC-4 a tool that changed is seen beside what was approved, and approved in the page", async () => {
  const { connection } = stage.suite;
  const config = { name: "sums", stdio: { command: process.execPath, args: [turncoat, "10000"] } };
  const sources = [{ name: "sums", provider: "mcp", pin: true, config }];
  const agent = {
    name: "adder",
    model: { provider: "scripted", model: "clerk.json" },
    sources,
    tools: { use: ["@sums/*"] },
  };
  await connection.client(AgentService).applyAgent({ agent });
  await connection.client(SessionService).createSession({ agent: "adder", sessionId: "adder" });
  const tools = connection.client(ToolService);
  const isThere = async () => {
    const listed = await tools.listTools({ scope: { case: "session", value: { sessionId: "adder" } } });
    return listed.tools.some(({ reference, callable }) => reference === "@sums/add" && callable);
  };
  await until(isThere, { timeoutMs: 60_000, what: "the tool to be there" });

  const page = await stage.open("#/tools/adder");
  const change = page.getByRole("article", { name: "@sums/add has changed" });
  await change.getByText("Adds two numbers.", { exact: false }).first().waitFor();
  await change.getByText("id_rsa", { exact: false }).waitFor();
  await change.getByRole("button", { name: "approve what is offered now" }).click();
  await change.waitFor({ state: "detached" });
  await page.getByRole("button", { name: /sums__add/ }).click();
  await page.getByText("✓ may be called").waitFor();
  await page.context().close();
});

it("what an agent keeps is seen in its space", async () => {
  await stage.run("shop", "4711");
  const page = await stage.open("#/spaces/desk");
  await page.getByText("Goals, plans and memory of shop").first().click();
  await page.getByText("Ship order", { exact: false }).first().waitFor();
  await page.getByText("Ask who has not answered", { exact: false }).waitFor();
  await page.context().close();
});

it("no page met an error, or its policy", () => {
  expect(stage.complaints).toEqual([]);
});
