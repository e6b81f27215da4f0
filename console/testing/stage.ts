// What the journeys play on: the suite as processes of its own with a project of this folder, and Chromium.

import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { openConnection } from "../../cli/connection.ts";
import { openTestSuite, type TestSuite, type TestSuiteOptions } from "../../test/harness/suite.ts";

export interface Stage extends AsyncDisposable {
  readonly suite: TestSuite;
  readonly browser: Browser;
  /** The console at a place of it, for whoever has the suite's own key, or another one. */
  open(place?: string, options?: BrowserContextOptions & { readonly key?: string }): Promise<Page>;
  /** What pages have complained of, such as an error or a breach of their policy. */
  readonly complaints: readonly string[];
  /** Starts a run, in a trace if one is named; gives its id. */
  run(agent: string, text: string, traceparent?: string): Promise<string>;
}

/** A page is waited for as long as a machine with other work may take. */
const pageMs = 60_000;

export const executablePath = process.env.TOOLBUS_CHROMIUM ?? "/usr/bin/chromium";
const folder = (name: string) => fileURLToPath(new URL(`project/${name}`, import.meta.url));

interface StageOptions extends Partial<TestSuiteOptions> {
  /** An operator's, where the environment names the keys. */
  readonly key?: string;
}

export async function openStage({ key: operatorKey, ...options }: StageOptions = {}): Promise<Stage> {
  await using stack = new AsyncDisposableStack();
  const env = {
    TOOLBUS_AGENTS: folder("agents"),
    TOOLBUS_TOOLS: folder("tools"),
    TOOLBUS_SCRIPTS: folder("models"),
    ...options.env,
  };
  const suite = stack.use(await openTestSuite({ ...options, env }));
  const args = ["--headless", "--no-sandbox", "--disable-gpu"];
  const browser = stack.use(await chromium.launch({ executablePath, args }));
  const connection = operatorKey ? openConnection({ url: suite.url, apiKey: operatorKey }) : suite.connection;
  await retried(() => connection.client(SpaceService).createSpace({ spaceId: "desk", title: "The desk" }));
  const complaints: string[] = [];
  const owned = stack.move();
  return {
    suite,
    browser,
    complaints,
    async open(place = "", { key = suite.key?.key, ...contextOptions } = {}) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...contextOptions });
      context.setDefaultTimeout(pageMs);
      const page = await context.newPage();
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on("console", (message) => {
        const text = message.text();
        // A suite that is down cannot be asked: the page says so itself.
        if (message.type() === "error" && !/Failed to load resource/.test(text)) complaints.push(text);
      });
      if (key) await context.addInitScript((value) => sessionStorage.setItem("toolbus-key", value), key);
      await page.goto(`${suite.url}/${place}`);
      return page;
    },
    async run(agent, text, traceparent) {
      const message = { role: Role.USER, content: textContent(text) };
      const input = [{ item: { case: "message", value: message } as const }];
      const headers = traceparent === undefined ? {} : { traceparent };
      const request = { agent, input, idempotencyKey: randomUUID() };
      const { run } = await retried(() => connection.client(RunService).createRun(request, { headers }));
      return run?.id ?? "";
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A suite that has a busy machine to start on may be away for a moment once more. */
function retried<T>(ask: () => Promise<T>): Promise<T> {
  return retryWhile(isUnavailable, ask, { initialMs: 100, maxMs: 1_000, patienceMs: 30_000 });
}
