// One principal's page shows nothing of another's (SEC-2), and says what it may not.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { gatewayAt } from "../../test/system/access/world.ts";
import { openStage, type Stage } from "./stage.ts";

const keys = { olga: "the-key-of-olga-herself", ann: "the-key-of-ann-herself", bob: "the-key-of-bob-herself" };
const words = "only ann may read this";
const stack = new AsyncDisposableStack();
let stage: Stage;
let runId = "";

beforeAll(async () => {
  const env = {
    TOOLBUS_API_KEYS: Object.entries(keys)
      .map(([name, key]) => `${name}:${key}`)
      .join(),
    TOOLBUS_OPERATORS: "olga",
    TOOLBUS_DEFAULT_GRANT: "*",
  };
  stage = stack.use(await openStage({ env, key: keys.olga }));
  const runs = gatewayAt(stage.suite.url, keys.ann).client(RunService);
  const value = { role: Role.USER, content: textContent(words) };
  const { run } = await runs.createRun({ agent: "clerk", input: [{ item: { case: "message", value } }] });
  runId = run?.id ?? "";
  await until(async () => (await runs.getRun({ runId })).run?.state === RunState.COMPLETED);
});
afterAll(() => stack.disposeAsync());

async function go(page: Page, place: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/${place}`);
}

it("who started a run sees it", async () => {
  const page = await stage.open(`#/runs/${runId}`, { key: keys.ann });
  await page.getByText(words, { exact: false }).first().waitFor();
  await page.context().close();
});

it.each(["bob", "olga"] as const)("%s, who did not, sees nothing of it at any place", async (name) => {
  const page = await stage.open("#/runs", { key: keys[name] });
  await page.getByText("No runs here", { exact: false }).waitFor();
  for (const place of ["overview", "inbox", "agents/clerk", "spaces/desk", "audit", "tools/clerk", `runs/${runId}`]) {
    await go(page, place);
    // streams stay open, so that the network is never idle: a fresh answer of the suite has come when the screen is drawn
    await page.waitForResponse((response) => response.url().includes("/toolbus."));
    await page.locator("main h1").waitFor();
    expect(await page.locator("body").textContent(), place).not.toContain(words);
  }
  await page.getByText("belongs to another caller", { exact: false }).first().waitFor();
  await page.context().close();
});

it("who is no operator is told so where it matters, and reads the rest", async () => {
  const page = await stage.open("#/agents/clerk", { key: keys.bob });
  await page.getByText("only operators", { exact: false }).first().waitFor();
  await go(page, "spaces/desk");
  await page.getByLabel("Say something here").waitFor();
  await page.context().close();
});

it("no page met an error, or its policy", () => {
  expect(stage.complaints).toEqual([]);
});
