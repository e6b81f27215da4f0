// The demo as a person plays it: it is watched in the console, and answered there.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";
import { expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { projectRoot } from "../../test/architecture/source-files.ts";
import { executablePath } from "./stage.ts";

it("the demo waits for the person, who answers in the page, and ends well", async () => {
  await using stack = new AsyncDisposableStack();
  const args = ["examples/demo/main.ts", "--console"];
  const demo = spawn(process.execPath, args, { cwd: projectRoot, env: { ...process.env, NO_COLOR: "1" } });
  stack.defer(() => void demo.kill("SIGTERM"));
  let said = "";
  demo.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const ended = once(demo, "close");
  const [, address = "", keyPath = ""] =
    (await until(() => /answer at (\S+); its key is in (.+)/.exec(said) ?? undefined, { timeoutMs: 120_000 })) ?? [];
  const browser = stack.use(await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox"] }));
  const page = await browser.newPage();
  await page.goto(address);
  await page.getByLabel("Your key").fill((await readFile(keyPath, "utf8")).trim());
  await page.getByRole("button", { name: "enter" }).click();
  await page.getByRole("button", { name: "lookup_order" }).waitFor();
  const question = page.getByRole("article", { name: "confirm waits" });
  const asked = (await question.getByText("order-", { exact: false }).first().textContent()) ?? "";
  await question.getByLabel("yes", { exact: true }).check();
  await question.getByLabel("Note").fill(/order-[0-9a-f-]+/.exec(asked)?.[0] ?? "");
  await question.getByRole("button", { name: "answer" }).click();
  const [exitCode] = await ended;
  expect(said).toContain("all five answered");
  expect(exitCode).toBe(0);
});
