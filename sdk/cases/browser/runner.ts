// Plays the cases with the library for TypeScript in Chromium: `npx node sdk/cases/browser/runner.ts`, the suite's address in TOOLBUS_URL, a
// key in TOOLBUS_API_KEY, and the page's origin, http://127.0.0.1:7491, among the suite's TOOLBUS_CORS_ORIGINS.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build, preview } from "vite";
import { PAGE_ORIGIN } from "./origin.ts";
import type { PlayInPage } from "./page.ts";

const { TOOLBUS_URL: url = "http://127.0.0.1:7480", TOOLBUS_API_KEY: apiKey = "" } = process.env;
const executablePath = process.env.TOOLBUS_CHROMIUM ?? "/usr/bin/chromium";
const file = readFileSync(process.argv[2] ?? "sdk/cases/cases.yaml", "utf8");

const root = fileURLToPath(new URL(".", import.meta.url));
const outDir = fileURLToPath(new URL("../../../.toolbus/cases/page", import.meta.url));
const common = { root, configFile: false, logLevel: "warn" } as const;
await build({ ...common, build: { outDir, emptyOutDir: true, target: "es2022" } });

await using stack = new AsyncDisposableStack();
const { hostname: host, port } = new URL(PAGE_ORIGIN);
const served = await preview({ ...common, build: { outDir }, preview: { host, port: Number(port), strictPort: true } });
stack.adopt(served, (server) => server.close());
const browser = stack.use(
  await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu"] }),
);
const page = await browser.newPage();
page.on("console", (message) => {
  if (message.type() === "log") console.log(message.text());
});
await page.goto(PAGE_ORIGIN);
const failed = await page.evaluate(
  ([cases, options]) => (globalThis as unknown as { playInPage: PlayInPage }).playInPage(cases, options),
  [file, { url, apiKey }] as const,
);
if (failed > 0) process.exitCode = 1;
