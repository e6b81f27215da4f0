// What people do in the console, in a real browser against a real suite (ORCH-12).

import axeCore from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { signalProcess } from "../../test/harness/processes.ts";
import { openStage, type Stage } from "./stage.ts";

const stack = new AsyncDisposableStack();
let stage: Stage;
beforeAll(async () => {
  stage = stack.use(await openStage({ isolate: true, restart: false }));
});
afterAll(() => stack.disposeAsync());

const stateOf = async (runId: string) => (await stage.suite.connection.client(RunService).getRun({ runId })).run?.state;

function fail(name: string): never {
  throw new Error(`there is no ${name}`);
}

const figure = (page: Page, label: string) => page.locator(".figure", { hasText: label });

/** Kills the orchestrator, which is the only one and so has every run, and starts another one. */
async function replaceOrchestrator(): Promise<void> {
  const running = stage.suite.services.filter(({ service, pid }) => service === "orchestrator" && pid !== undefined);
  expect(running).toHaveLength(1);
  signalProcess({ pid: running[0]?.pid }, "SIGKILL");
  await stage.suite.start("orchestrator");
}

async function go(page: Page, place: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, place);
}

describe("without a key", () => {
  it("asks for one, says what is wrong with another, and shows nothing before", async () => {
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    await page.goto(stage.suite.url);
    await page.locator("#key:focus").waitFor();
    await page.keyboard.type("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    await page.locator("#key:focus").waitFor();
    expect(await page.getByRole("navigation").count()).toBe(0);
    await page.getByLabel("Your key").fill(stage.suite.key?.key ?? "");
    await page.getByRole("button", { name: "enter" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(page.url(), "no key in an address").not.toContain(stage.suite.key?.key);
    await page.getByRole("button", { name: "leave" }).click();
    await page.getByLabel("Your key").waitFor();
    await context.close();
  });
});

describe("a run that waits for a person", () => {
  it("is watched as it happens, answered in the page, and says why a call was refused", async () => {
    const runId = await stage.run("shop", "4711");
    const page = await stage.open(`#/runs/${runId}`);
    const question = page.getByRole("article", { name: "confirm waits" });
    await question.getByText("Shall order 4711 be shipped?").waitFor();
    await page.getByRole("button", { name: "ship_order" }).click();
    await page.getByText("not in tools.allowed", { exact: false }).first().waitFor();

    await question.getByLabel("yes", { exact: true }).check();
    await question.getByLabel("Note").fill("by noon");
    await question.getByRole("button", { name: "answer" }).click();
    await page.getByText("completed", { exact: true }).waitFor();
    await page.getByRole("button", { name: "ship_order" }).click(); // puts the detail away
    await page.getByText(/The person said: .*by noon/).waitFor();
    expect(await stateOf(runId)).toBe(RunState.COMPLETED);

    const chosen = page.getByRole("button", { name: "ship_order" });
    await chosen.click();
    await expect.poll(() => chosen.evaluate((row) => getComputedStyle(row).boxShadow)).not.toBe("none"); // is marked
    await chosen.click();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "copy as curl" }).click();
    await page.getByRole("button", { name: "copied" }).waitFor();
    await page.getByRole("button", { name: "copy as curl" }).waitFor();
    await page.locator(".asked", { hasText: "4711" }).waitFor();

    await page.getByLabel(/^As it was after event/).fill("1");
    await page.getByText("An earlier moment", { exact: false }).waitFor();
    await page.getByText("As it was after event 1").waitFor();
    expect(await page.getByRole("button", { name: /^turn 2/ }).count(), "not yet then").toBe(0);

    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "export" }).click();
    const file = await (await saved).path();
    await go(page, "#/runs");
    await page.getByLabel("open a log…").setInputFiles(file);
    await page.getByRole("heading", { name: "Run of shop" }).waitFor();
    await page.getByText(/The person said: .*by noon/).waitFor();
    await page.context().close();
  });

  it("says who executed each call, in how many attempts, and to which trace the run belongs", async () => {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const runId = await stage.run("shop", "4710", `00-${traceId}-b7ad6b7169203331-01`);
    const page = await stage.open(`#/runs/${runId}`);
    await page.getByText(traceId).waitFor();
    await page.getByRole("button", { name: "everything__get-sum" }).click();
    const fact = (name: string) =>
      page.locator(".detail dt", { hasText: new RegExp(`^${name}$`) }).locator("xpath=following-sibling::dd[1]");
    await expect.poll(() => fact("provider").textContent()).toBe("mcp");
    expect([await fact("kind").textContent(), await fact("attempts").textContent()]).toEqual(["mcp", "1"]);
    await page.getByRole("button", { name: "ship_order" }).click();
    await page.getByText("not in tools.allowed", { exact: false }).first().waitFor();
    expect(await fact("provider").count(), "nobody executed it").toBe(0);
    await stage.suite.connection.client(RunService).cancelRun({ runId, reason: "seen" });
    await page.context().close();
  });

  it("looks like one that waits, not like one that works: in the list, the overview and its header", async () => {
    const runId = await stage.run("shop", "4716");
    const page = await stage.open("#/runs");
    const row = page.locator(".run-row", { has: page.locator(`a[href="#/runs/${runId}"]`) });
    await row.locator(".badge.wait", { hasText: "waits for a person" }).waitFor();
    await row.getByText(/^since \d/).waitFor();
    await go(page, "#/overview");
    const line = page.locator("li", { has: page.locator(`a[href="#/runs/${runId}"]`) });
    await line.locator(".badge.wait", { hasText: "waits for a person" }).waitFor();
    await line.getByText(/^since \d/).waitFor();
    await go(page, `#/runs/${runId}`);
    await page.locator(".screen-head .badge.wait", { hasText: "waits for a person" }).waitFor();
    await page
      .locator(".screen-head")
      .getByText(/^since \d/)
      .waitFor();
    await stage.suite.connection.client(RunService).cancelRun({ runId, reason: "seen" });
    await page.locator(".screen-head").getByText("canceled", { exact: true }).waitFor();
    await page.context().close();
  });

  it("is found in the inbox and declined from a link on a phone", async () => {
    const runId = await stage.run("shop", "4712");
    const page = await stage.open("#/inbox", { viewport: { width: 390, height: 844 } });
    await page.getByRole("link", { name: "confirm" }).click();
    await page.getByRole("heading", { name: "A question" }).waitFor();
    const box = async (name: string) =>
      (await page.getByRole("button", { name, exact: true }).boundingBox()) ?? fail(name);
    const [answer, decline] = [await box("answer"), await box("decline…")];
    expect([answer.height, decline.height].every((height) => height >= 44)).toBe(true);
    expect(decline.x - answer.x - answer.width, "side by side, with space between").toBeGreaterThan(8);
    await page.getByText("question: Shall order 4712 be shipped?").waitFor();
    await page.getByRole("link", { name: "The desk" }).waitFor();
    await page.getByRole("button", { name: "decline…" }).click();
    await page.getByText("nobody will answer this", { exact: false }).waitFor();
    expect(await stateOf(runId), "nothing at one click").toBe(RunState.IN_PROGRESS);
    await page.getByLabel("Reason").fill("closed today");
    await page.getByRole("button", { name: "decline", exact: true }).click();
    await page.getByText(/^declined · confirm/).waitFor();
    await page.getByText("nothing is left to answer", { exact: false }).waitFor();
    await expect.poll(() => stateOf(runId)).toBe(RunState.COMPLETED);
    await page.getByRole("link", { name: `run ${runId}` }).click();
    await page
      .getByText(/The person said: .*closed today/)
      .first()
      .waitFor();
    await page.context().close();
  });

  it("has times that are whole on a phone, and says that they go on", async () => {
    const runId = await stage.run("shop", "4717");
    const page = await stage.open(`#/runs/${runId}`, { viewport: { width: 390, height: 844 } });
    await page.getByRole("button", { name: "ship_order" }).waitFor();
    await page.locator("dt", { hasText: "so far" }).waitFor();
    const fits = await page.locator(".span-time").evaluateAll((times) =>
      times.every((time) => {
        time.textContent = "16 min 40 s …";
        return time.scrollWidth <= time.clientWidth;
      }),
    );
    expect(fits).toBe(true);
    await page.context().close();
    await stage.suite.connection.client(RunService).cancelRun({ runId, reason: "seen" });
  });

  it("is forked from a turn with other words", async () => {
    const runId = await stage.run("clerk", "red");
    const page = await stage.open(`#/runs/${runId}`);
    await page.getByText("You said red.").waitFor();
    await page.getByLabel(/^Fork after event/).fill("blue");
    await page.getByRole("button", { name: "fork" }).click();
    await page.getByText("You said blue.").waitFor();
    expect(page.url()).not.toContain(runId);
    await page
      .getByText(/after event \d+$/)
      .first()
      .waitFor();
    await page.getByRole("link", { name: runId }).waitFor();
    await page.locator(".asked", { hasText: "blue" }).waitFor();
    await page.context().close();
  });
});

describe("a run that waits for its client", () => {
  it("says so everywhere, is answered in its client's place, and then by a person who has an hour", async () => {
    const message = { role: Role.USER, content: textContent("parcel 12 to Lyon") };
    const options = { functionTools: [{ name: "look_up", description: "where a parcel goes" }] };
    const input = [{ item: { case: "message" as const, value: message } }];
    await stage.suite.connection.client(RunService).createRun({ agent: "courier", input, options });
    const page = await stage.open("#/overview");
    await figure(page, "wait for clients").getByText("1", { exact: true }).waitFor();
    await figure(page, "wait for clients").click();
    const row = page.locator(".run-row", { hasText: "parcel 12 to Lyon" });
    await row.getByText("waits for its client").waitFor();
    await page.getByLabel("Words").fill("lyon nobody said");
    await expect.poll(() => row.count()).toBe(0);
    await page.getByLabel("Words").fill("to lyon");
    await row.getByRole("link").click();
    await page.locator(".screen-head .badge.wait", { hasText: "waits for its client" }).waitFor();
    const asked = page.getByRole("article", { name: "look_up waits" });
    await asked.getByLabel("Answer").fill('"12 Rue Royale"');
    await asked.getByRole("button", { name: "answer in its place" }).click();

    const question = page.getByRole("article", { name: "sign_off waits" });
    await question.getByText("12 Rue Royale", { exact: false }).waitFor();
    await question.getByText(/expires .*(59 min \d+ s|1 h 0 min) left/).waitFor();
    await question.getByLabel("yes", { exact: true }).check();
    await question.getByRole("button", { name: "answer" }).click();
    await page.getByText('The person signed: {"signed":true}').waitFor();
    await page.context().close();
  });
});

describe("what people write", () => {
  it("SEC-7 stands in a page without control characters, each of which has a sign", async () => {
    const runId = await stage.run("clerk", "signed by \u202eecila\u202c\u0007\u001b[2J end");
    const page = await stage.open(`#/runs/${runId}`);
    await page.getByText("signed by \ufffdecila\ufffd\u2407\u241b[2J end").first().waitFor();
    await page.goto(`${stage.suite.url}/#/runs`);
    await page.locator(".run-row", { hasText: "signed by \ufffdecila" }).waitFor();
    expect(await page.content()).not.toMatch(/(?![\t\n])[\p{Cc}\p{Bidi_Control}]/u);
    await page.context().close();
  });
});

describe("lists of runs", () => {
  it("are asked for once and follow what happens from there on, through the death of an orchestrator", async () => {
    const page = await stage.open("#/runs");
    let listed = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/ListRuns")) listed += 1;
    });
    await page.reload();
    const line = (text: string) => page.locator(".run-row", { hasText: text });
    await page.locator(".run-row").first().waitFor();
    await stage.run("clerk", "green");
    await line("You said green.").getByText("completed").waitFor();
    expect(listed).toBe(1);
    await replaceOrchestrator();
    await stage.run("clerk", "violet");
    await line("You said violet.").getByText("completed").waitFor();
    expect(await line("You said green.").count(), "what was there stays").toBe(1);
    await page.context().close();
  });

  it("fill the overview: a run that waits counts as one that waits, and no more when it is canceled", async () => {
    const page = await stage.open("#/overview");
    await page.getByText("all services serve").click();
    await page.locator(".services li", { hasText: "RunService" }).getByText("serving").waitFor();
    await page.getByRole("link", { name: /^MCP servers: \d+ healthy|no MCP server in use/ }).waitFor();
    await page.locator(".figure", { hasText: "failed in the last hour" }).waitFor();
    const count = async (label: string) => Number(await figure(page, label).locator("strong").textContent());
    const counts = async () => ({ waiting: await count("wait for people"), working: await count("in progress") });
    const runs = stage.suite.connection.client(RunService);
    const { runs: left } = await runs.listRuns({ states: [RunState.IN_PROGRESS], pageSize: 1_000 });
    for (const { id } of left) await runs.cancelRun({ runId: id, reason: "of another journey" });
    await expect.poll(counts).toEqual({ waiting: 0, working: 0 });
    const runId = await stage.run("shop", "4715");
    await expect.poll(counts).toEqual({ waiting: 1, working: 0 });
    await page.locator(`a[href="#/runs/${runId}"]`, { hasText: "4715" }).waitFor();
    await runs.cancelRun({ runId, reason: "enough" });
    await page.locator(`a[href="#/runs/${runId}"]`).waitFor({ state: "detached" });
    await expect.poll(counts).toEqual({ waiting: 0, working: 0 });
    await go(page, `#/runs/${runId}`);
    await page.getByRole("heading", { name: "last said" }).waitFor();
    await page.context().close();
  });
});

describe("the suite as it stands", () => {
  it("tools say who may call them and why not, and one is tried by a form from its schema", async () => {
    const page = await stage.open("#/tools/shop?tool=everything__get-sum");
    const form = page.locator("form", { has: page.getByRole("button", { name: "call" }) });
    await form.getByLabel("a", { exact: true }).fill("19");
    await form.getByLabel("b", { exact: true }).fill("23");
    await form.getByRole("button", { name: "call" }).click();
    await page.getByText("The sum of 19 and 23 is 42", { exact: false }).first().waitFor();
    await page.getByRole("button", { name: /ship_order/ }).click();
    await page.getByText("✕ may not be called").waitFor();
    await page.getByText("healthy").first().waitFor();
    await page.getByText("what it wrote last").first().click();
    await page.getByText("Starting default (STDIO) server", { exact: false }).waitFor();
    await page.context().close();
  });

  it("a session is switched to another agent, and seen to be", async () => {
    const sessions = stage.suite.connection.client(SessionService);
    await sessions.createSession({ sessionId: "switched", agent: "clerk" });
    const page = await stage.open("#/agents");
    await page.getByLabel("switch session switched to").selectOption("shop");
    const row = page.locator(".session-row", { has: page.getByRole("link", { name: "switched" }) });
    await row.getByRole("button", { name: "switch", exact: true }).click();
    await row.getByText("shop", { exact: true }).and(page.locator("span")).waitFor();
    expect((await sessions.getSession({ sessionId: "switched" })).session?.agent).toBe("shop");
    await page.context().close();
  });

  it("each decision of the audit trail leads to its call", async () => {
    const page = await stage.open("#/audit?words=ship_order");
    await page.locator(".audit-row", { hasText: "blocked" }).first().click();
    const detail = page.locator(".detail");
    expect(await detail.textContent()).toContain("not in tools.allowed");
    await detail.getByRole("link", { name: /^run_\w+_/ }).click();
    await page.getByRole("heading", { name: "ship_order" }).waitFor();
    await page.context().close();
  });

  it("the arrows lead from row to row, and a screen that was chosen has the focus", async () => {
    const page = await stage.open("#/audit");
    await page.locator(".audit-row").first().waitFor();
    await page.getByRole("link", { name: "Tools" }).press("Enter");
    await page.getByRole("heading", { name: "Tools", level: 1 }).waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("main");
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
    await page.locator(".tool-row").nth(2).waitFor();
    await page.locator(".rows").focus();
    await page.keyboard.press("ArrowDown");
    const first = await focused();
    await page.keyboard.press("ArrowDown");
    expect(await focused()).not.toBe(first);
    await page.keyboard.press("ArrowUp");
    expect(await focused()).toBe(first);
    await page.context().close();
  });

  it("an orchestrator is killed, and the page goes on by itself", async () => {
    const runId = await stage.run("shop", "4713");
    const page = await stage.open(`#/runs/${runId}`);
    const question = page.getByRole("article", { name: "confirm waits" });
    await question.waitFor();
    await replaceOrchestrator();
    await question.getByLabel("no", { exact: true }).check();
    await question.getByLabel("Note").fill("not today");
    await question.getByRole("button", { name: "answer" }).click();
    await page.getByText(/The person said: .*not today/).waitFor();
    await page.getByText("taken over by another process").waitFor();
    await page.context().close();
  });

  it("a suite that is not reached is told with the time, and taken up again", async () => {
    const runId = await stage.run("shop", "4714");
    const page = await stage.open(`#/runs/${runId}`);
    const question = page.getByRole("article", { name: "confirm waits" });
    await question.waitFor();
    await page.context().setOffline(true);
    await page.getByText(/since \d.* the suite is not reached/).waitFor();
    await question.waitFor(); // what was seen stays
    await question.getByLabel("yes", { exact: true }).check();
    await question.getByLabel("Note").fill("at last");
    await question.getByRole("button", { name: "answer" }).click();
    await question.getByText(`${stage.suite.url} cannot be reached`).waitFor();
    await page.context().setOffline(false);
    await expect.poll(() => page.getByRole("status").textContent()).toBe("");
    await question.getByRole("button", { name: "answer" }).click();
    await page.getByText("completed", { exact: true }).waitFor();
    await page.context().close();
  });
});

describe("for everybody", () => {
  const places = ["overview", "runs", "inbox", "tools/shop?tool=confirm", "agents/shop", "spaces/desk", "audit"];

  it.each(["light", "dark"] as const)("axe finds nothing in %s", async (colorScheme) => {
    const runId = await stage.run("clerk", "for all");
    const page = await stage.open("", { colorScheme });
    await page.evaluate(axeCore.source);
    for (const place of [...places, `runs/${runId}`]) {
      await go(page, `#/${place}`);
      await page.locator(".rows .row, .list li, .cards article, .empty, .figure").first().waitFor();
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      const found = violations.map(({ id, nodes }) => `${place}: ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      expect(found).toEqual([]);
    }
    await page.context().close();
  });

  it("no page met an error, or its policy", () => {
    expect(stage.complaints).toEqual([]);
  });
});

declare global {
  var axe: typeof axeCore;
}
