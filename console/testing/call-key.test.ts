// A question that somebody answers on a phone, with a key for it alone (SEC-2, ORCH-12).

import axeCore from "axe-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openStage, type Stage } from "./stage.ts";

const phone = { viewport: { width: 390, height: 844 } };
const stack = new AsyncDisposableStack();
let stage: Stage;
beforeAll(async () => {
  stage = stack.use(await openStage());
});
afterAll(() => stack.disposeAsync());

/** The call by which the run asks. */
async function askedBy(runId: string): Promise<string> {
  const calls = stage.suite.connection.client(ToolCallService);
  const call = await until(
    async () => {
      const listed = await calls.listToolCalls({ pageSize: 1_000 });
      return listed.calls.find((one) => one.runId === runId && one.tool === "confirm");
    },
    { timeoutMs: 30_000 },
  );
  return call?.callId ?? "";
}

it("SEC-2 a key is made in the page, and answers its question from a phone, where it is all that is seen", async () => {
  const runId = await stage.run("shop", "6001");
  const page = await stage.open(`#/runs/${runId}`);
  const question = page.getByRole("article", { name: "confirm waits" });
  await question.getByText("let somebody else answer").click();
  await question.getByLabel("The key holds for").selectOption("a day");
  await question.getByRole("button", { name: "make a key" }).click();
  const key = await question.getByLabel("Key", { exact: true }).inputValue();
  const link = await question.getByLabel("Link", { exact: true }).inputValue();
  expect(link).toBe(`${stage.suite.url}/#/inbox/${await askedBy(runId)}`);
  expect(page.url(), "no key in an address").not.toContain(key.slice(0, 20));

  const context = await stage.browser.newContext(phone);
  const other = await context.newPage();
  const addresses: string[] = [];
  const failed: string[] = [];
  const complaints: string[] = [];
  other.on("framenavigated", (frame) => addresses.push(frame.url()));
  await other.goto(link);
  await other.getByText("Whoever sent you this address").waitFor();
  await other.getByLabel("Your key").fill(` ${key}\n`);
  other.on("response", (response) => {
    if (response.status() >= 400) failed.push(`${response.status()} ${response.url()}`);
  });
  other.on("pageerror", (error) => complaints.push(String(error)));
  other.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  const methods = new Set<string>();
  other.on("request", (request) => {
    if (request.method() === "POST") methods.add(new URL(request.url()).pathname.split("/").at(-1) ?? "");
  });
  await other.getByRole("button", { name: "enter" }).click();
  const asked = other.getByRole("article", { name: "confirm waits" });
  await asked.getByText("Shall order 6001 be shipped?", { exact: false }).waitFor();
  expect(await other.getByRole("navigation").count(), "nothing else is offered").toBe(0);
  expect(await asked.getByRole("link", { name: "run" }).count()).toBe(0);
  expect(await asked.getByText("let somebody else answer").count()).toBe(0);
  const widths = await other.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(widths[0], "nothing stands over the edge").toBeLessThanOrEqual(widths[1] ?? 0);
  await other.evaluate(axeCore.source);
  const violations = await other.evaluate(
    async () => (await (globalThis as unknown as { axe: typeof axeCore }).axe.run()).violations,
  );
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  await other.reload();
  await asked.getByLabel("yes", { exact: true }).check();
  await asked.getByLabel("Note").fill("from a phone");
  await asked.getByRole("button", { name: "answer" }).click();
  await other.getByText("Answered. You can close this page.").waitFor();
  await page.getByText(/The person said: .*from a phone/).waitFor();
  expect(failed, "nothing fails in the background").toEqual([]);
  expect(complaints).toEqual([]);
  expect([...methods].sort()).toEqual(["GetToolCall", "SubmitToolResult"]);
  expect(addresses.filter((address) => address.includes(key.slice(0, 20)))).toEqual([]);
  await context.close();
  await page.context().close();
});

it("SEC-2 a key whose question is answered elsewhere says so, and asks no more", async () => {
  const callId = await askedBy(await stage.run("shop", "6002"));
  const calls = stage.suite.connection.client(ToolCallService);
  const { key } = await calls.createCallKey({ callId });
  const page = await stage.open("#/runs", { ...phone, key });
  await page.getByRole("article", { name: "confirm waits" }).waitFor();
  expect(page.url(), "it stands where its question is").toContain(`#/inbox/${callId}`);
  await calls.submitToolResult({ callId, outcome: { case: "resultJson", value: '{"approved":false}' } });
  await page.getByText("Nothing is left to answer here", { exact: false }).waitFor();
  let requests = 0;
  page.on("request", () => {
    requests += 1;
  });
  await page.getByRole("button", { name: "leave" }).click();
  await page.getByLabel("Your key").waitFor();
  expect(requests, "the form asks how people log in, at most").toBeLessThanOrEqual(1);
  await page.context().close();
});

it("SEC-1 a key that does not hold is asked for again, with the reason", async () => {
  const callId = await askedBy(await stage.run("shop", "6003"));
  const { key } = await stage.suite.connection.client(ToolCallService).createCallKey({ callId });
  const page = await stage.open(`#/inbox/${callId}`, { ...phone, key: key.slice(0, -3) });
  await page.getByRole("alert").getByText("the key of one call", { exact: false }).waitFor();
  await page.getByLabel("Your key").fill(key);
  await page.getByRole("button", { name: "enter" }).click();
  await page.getByRole("article", { name: "confirm waits" }).waitFor();
  await page.context().close();
});

it("no page met an error, or its policy", () => {
  expect(stage.complaints).toEqual([]);
});
