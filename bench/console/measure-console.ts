import { type Browser, type CDPSession, chromium, type Page } from "playwright-core";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { LAST, openPlayedSuite, type Played, type PlayedSuite } from "./played-suite.ts";

/*
 * How quickly is the console there, how smoothly does it show much, and what does it hold after an hour? The suite behind it is
 * played, so that the page alone is measured.
 */

export interface ConsoleOptions extends Played {
  readonly rounds: number;
  readonly onProgress: (message: string) => void;
}

const executablePath = process.env.TOOLBUS_CHROMIUM ?? "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu"];

/** What is used of a page, in what is evaluated there. */
interface InPage {
  readonly document: { querySelector(selector: string): { scrollTop: number; readonly scrollHeight: number } | null };
  readonly location: { hash: string };
  requestAnimationFrame(step: (now: number) => void): void;
}

/** For how long a list is scrolled, in ms. */
const scrollMs = 3_000;
/** How often one goes from screen to screen in the hour that is played. */
const visits = 20;

export async function* measureConsole(options: ConsoleOptions): AsyncIterable<BenchResult> {
  const { rounds, onProgress, runs, deltas } = options;
  await using suite = await openPlayedSuite(options);
  await using browser = await chromium.launch({ executablePath, args });

  onProgress("the first paint");
  const paints = await firstPaints(browser, suite, rounds);
  yield result("first_paint_ms", "ms", paints.paintMs);
  yield result("gzip_kb", "KB", [paints.kilobytes]);

  onProgress(`a list of ${runs} runs, scrolled`);
  yield result("rows_10000_scroll_fps", "1/s", await scrolled(browser, suite, runs, rounds));

  onProgress(`a run that writes ${deltas} deltas`);
  const shown: number[] = [];
  for (let round = 0; round < rounds; round++) shown.push((deltas / (await shownMs(browser, suite))) * 1_000);
  yield result("deltas_per_s", "1/s", shown);

  onProgress("an hour");
  yield result("heap_mb_after_hour", "MB", [await heapAfterHour(browser, suite, options.auditEvents)]);
}

function result(metric: string, unit: string, values: readonly number[]): BenchResult {
  return comparedResult({ bench: "console", metric, unit }, values);
}

/** Of a page that was looked at before: its files are asked for again and are the same. */
async function firstPaints(browser: Browser, suite: PlayedSuite, rounds: number) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(suite.url);
  await page.locator(".figure").first().waitFor();
  const kilobytes = await page.evaluate(() => {
    const entries = performance.getEntries().filter((entry) => "encodedBodySize" in entry);
    const files = entries.filter(({ name }) => !name.includes("toolbus.") && !name.includes("grpc."));
    return (
      files.reduce((sum, entry) => sum + Number((entry as { encodedBodySize?: number }).encodedBodySize), 0) / 1_000
    );
  });
  const paintMs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await page.reload();
    await page.locator(".figure").first().waitFor();
    paintMs.push(
      await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN),
    );
  }
  await context.close();
  return { paintMs, kilobytes };
}

/** Frames a second while a list of so many rows is scrolled from one end towards the other. */
async function scrolled(browser: Browser, suite: PlayedSuite, runs: number, rounds: number): Promise<number[]> {
  const page = await browser.newPage();
  await page.goto(`${suite.url}/#/runs`);
  await fetchAllRows(page, runs);
  const rates: number[] = [];
  for (let round = 0; round < rounds; round++) rates.push(await page.evaluate(scrollFor, scrollMs));
  await page.close();
  return rates;
}

async function fetchAllRows(page: Page, runs: number): Promise<void> {
  await page.locator(".rows .row").first().waitFor();
  await page.waitForFunction((count) => {
    const box = (globalThis as unknown as InPage).document.querySelector(".rows");
    if (box) box.scrollTop = box.scrollHeight;
    return (box?.scrollHeight ?? 0) >= count * 44;
  }, runs);
}

/** Runs in the page. */
function scrollFor(durationMs: number): Promise<number> {
  const { document, requestAnimationFrame } = globalThis as unknown as InPage;
  const box = document.querySelector(".rows");
  if (!box) throw new Error("the page has no rows");
  return new Promise((resolve) => {
    let frames = 0;
    const start = performance.now();
    const step = (now: number) => {
      const share = (now - start) / durationMs;
      if (share >= 1) return resolve((frames * 1_000) / (now - start));
      frames += 1;
      box.scrollTop = share * box.scrollHeight;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}

/** Until the last delta stands on the page, in ms from when the run was opened. */
async function shownMs(browser: Browser, suite: PlayedSuite): Promise<number> {
  const page = await browser.newPage();
  await page.goto(`${suite.url}/#/overview`);
  await page.locator(".figure").first().waitFor();
  const startMs = performance.now();
  await openRun(page);
  const tookMs = performance.now() - startMs;
  await page.close();
  return tookMs;
}

async function openRun(page: Page): Promise<void> {
  await visit(page, "#/runs/run_0");
  await page.getByText(LAST).waitFor({ timeout: 120_000 });
}

/** Until all of it is there. */
async function openAudit(page: Page, events: number): Promise<void> {
  await visit(page, "#/audit");
  await page.locator("header", { hasText: events.toLocaleString("en-US") }).waitFor({ timeout: 60_000 });
}

async function visit(page: Page, place: string): Promise<void> {
  await page.evaluate((hash) => {
    (globalThis as unknown as InPage).location.hash = hash;
  }, place);
}

/** What the page holds when it has shown a long run, the audit trail and all runs, and was gone through again and again. */
async function heapAfterHour(browser: Browser, suite: PlayedSuite, auditEvents: number): Promise<number> {
  const page = await browser.newPage();
  await page.goto(`${suite.url}/#/overview`);
  const session = await page.context().newCDPSession(page);
  for (let round = 0; round < visits; round++) {
    if (round % 5 === 0) await openRun(page);
    await openAudit(page, auditEvents);
    await visit(page, "#/runs");
    await page.locator(".run-row").first().waitFor();
    await visit(page, "#/overview");
    await page.locator(".figure").first().waitFor();
  }
  await openAudit(page, auditEvents); // what one keeps open
  const used = await heapMegabytes(session);
  await page.close();
  return used;
}

async function heapMegabytes(session: CDPSession): Promise<number> {
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return usedSize / 2 ** 20;
}
