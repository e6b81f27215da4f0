// A page and the suite behind it, which is played: what a real one does seldom, or takes hours for.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { chromium, type Page } from "playwright-core";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { left, serveConsole } from "../../../bench/console/played-suite.ts";
import { executablePath } from "../stage.ts";

export interface PlayedStage extends AsyncDisposable {
  /** Another tab of the same browser. */
  open(place: string): Promise<Page>;
}

export async function openPlayedStage(routes: (router: ConnectRouter) => void): Promise<PlayedStage> {
  await using stack = new AsyncDisposableStack();
  const suite = stack.use(await serveConsole(routes));
  const args = ["--headless", "--no-sandbox", "--disable-gpu"];
  const browser = stack.use(await chromium.launch({ executablePath, args }));
  const context = await browser.newContext();
  context.setDefaultTimeout(60_000);
  const owned = stack.move();
  return {
    async open(place) {
      const page = await context.newPage();
      await page.goto(`${suite.url}/#/${place}`);
      return page;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** As a browser does with a tab behind another one. */
export async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
}

export function noCalls(router: ConnectRouter): void {
  router.service(ToolCallService, { listToolCalls: () => ({ calls: [] }) });
}

interface Watching {
  readonly signal: AbortSignal;
}

/** A watch of runs in which nothing happens. */
export async function* quietRuns(_request: unknown, { signal }: Watching) {
  yield { update: { case: "start" as const, value: { nextSequence: 1n } } };
  await left(signal);
}

/** A watch of a run that waits for its turn. */
export async function* queuedRun({ fromSequence = 0n }: { fromSequence?: bigint | undefined }, { signal }: Watching) {
  const event = { case: "accepted", value: { agent: "clerk", sessionId: "s" } } as const;
  const value = { runId: "run_0", sequence: 0, createTime: timestampFromMs(Date.now()), event };
  if (fromSequence === 0n) yield { update: { case: "event" as const, value } };
  await left(signal);
}
