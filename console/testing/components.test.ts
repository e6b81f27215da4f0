// Questions as components of the project draw them (ORCH-12), and what becomes of those that cannot.

import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { projectRoot } from "../../test/architecture/source-files.ts";
import { openStage, type Stage } from "./stage.ts";

const stack = new AsyncDisposableStack();
let stage: Stage;
let ui = "";
beforeAll(async () => {
  ui = await mkdtemp(join(tmpdir(), "ui-"));
  stack.defer(() => rm(ui, { recursive: true }));
  await mkdir(join(ui, "parts"));
  stage = stack.use(await openStage({ env: { TOOLBUS_UI: ui } }));
});
afterAll(() => stack.disposeAsync());

const example = join(projectRoot, "examples/ui/confirm.js");
const write = (text: string) => writeFile(join(ui, "confirm.js"), text);
const question = (page: Page) => page.getByRole("article", { name: "confirm waits" });

describe("a tool with a component of its own", () => {
  beforeEach(() => cp(example, join(ui, "confirm.js")));

  it("ORCH-12 is asked as the component draws it, and answered by it", async () => {
    const runId = await stage.run("shop", "5001");
    const page = await stage.open(`#/runs/${runId}`);
    await question(page).getByText("Shall order 5001 be shipped?", { exact: true }).waitFor();
    expect(await question(page).getByLabel("Note").getAttribute("placeholder")).toBe("for the agent");
    await question(page).getByLabel("Note").fill("by noon");
    await question(page).getByRole("button", { name: "approve" }).click();
    await page.getByText(/The person said: .*by noon/).waitFor();
    await page.context().close();
  });

  it("ORCH-12 can be asked in plain all the same", async () => {
    const runId = await stage.run("shop", "5002");
    const page = await stage.open(`#/runs/${runId}`);
    await question(page).getByRole("button", { name: "plain form" }).click();
    await question(page).getByLabel("yes", { exact: true }).check();
    await question(page).getByLabel("Note").fill("in plain");
    await question(page).getByRole("button", { name: "answer" }).click();
    await page.getByText(/The person said: .*in plain/).waitFor();
    await page.context().close();
  });

  it("ORCH-12 tells a component what the suite said against its answer, ends it, and shows an edit at the next look", async () => {
    const runId = await stage.run("shop", "5003");
    await writeFile(join(ui, "parts", "words.mjs"), 'export const word = "first";');
    await write(`import { word } from "./parts/words.mjs";
      export default async function (question, element) {
        element.textContent = word;
        await question.answer({ approved: "perhaps" }).then((taken) => { element.textContent += taken ? " taken" : " refused"; });
        return () => { document.title = "ended"; globalThis.ended = true; };
      }`);
    const page = await stage.open(`#/runs/${runId}`);
    await question(page).getByText("first refused").waitFor();
    await question(page).getByText("approved", { exact: false }).first().waitFor();
    expect(await page.evaluate("globalThis.ended")).toBeUndefined();
    await page.evaluate(() => {
      location.hash = "#/agents";
    });
    await expect.poll(() => page.evaluate("globalThis.ended")).toBe(true);
    await writeFile(join(ui, "parts", "words.mjs"), 'export const word = "second";');
    await page.goto(`${stage.suite.url}/#/runs/${runId}`);
    await page.reload();
    await question(page).getByText("second refused").waitFor();
    await page.context().close();
  });
});

describe("a component that cannot be used", () => {
  it.each([
    ["does not parse", "export default (", /ui\/confirm\.js cannot be used.*SyntaxError/],
    ["lacks a part", 'import "./gone.js"; export default () => {};', /ui\/confirm\.js cannot be used.*TypeError/],
    ["is none", "export const a = 1;", /ui\/confirm\.js cannot be used.*exports no function by default/],
    ["throws", 'export default () => { throw new Error("out of ink"); };', /ui\/confirm\.js .*Error: out of ink/],
    ["fails late", 'export default async () => { throw new Error("too late"); };', /ui\/confirm\.js .*Error: too late/],
    ["breaks the policy", 'export default () => { eval("1"); };', /ui\/confirm\.js cannot be used.*EvalError/],
  ])("ORCH-12 that %s is named with its fault, and the plain form answers", async (_what, text, told) => {
    await write(text);
    const runId = await stage.run("shop", "5010");
    const page = await stage.open(`#/runs/${runId}`);
    await question(page).getByText(told).waitFor();
    await question(page).getByLabel("yes", { exact: true }).check();
    await question(page).getByLabel("Note").fill("all the same");
    await question(page).getByRole("button", { name: "answer" }).click();
    await page.getByText(/The person said: .*all the same/).waitFor();
    await page.context().close();
  });

  it("ORCH-12 a tool without one has the plain form, and nothing fails in the background", async () => {
    await rm(join(ui, "confirm.js"));
    const runId = await stage.run("shop", "5020");
    const page = await stage.open();
    const failed: string[] = [];
    page.on("response", (response) => {
      if (response.status() >= 400) failed.push(`${response.status()} ${response.url()}`);
    });
    await page.goto(`${stage.suite.url}/#/runs/${runId}`);
    await question(page).getByLabel("yes", { exact: true }).waitFor();
    expect(await question(page).getByRole("button", { name: "plain form" }).count()).toBe(0);
    expect(failed).toEqual([]);
    await page.context().close();
  });
});

it("no page met an error that is not a component's own, or had its policy lifted", () => {
  expect(stage.complaints.filter((text) => !/unsafe-eval/.test(text))).toEqual([]);
});
