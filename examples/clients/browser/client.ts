// Opens the page in Chromium and looks at what it shows: by Connect and by gRPC-Web, from an origin that is not the gateway's.
//
// Run it with `npx node examples/clients/browser/client.ts`, the suite's address in TOOLBUS_URL, a key, if the gateway wants
// one, in TOOLBUS_API_KEY, and the page's origin, http://127.0.0.1:7490, among the suite's TOOLBUS_CORS_ORIGINS.

import assert from "node:assert/strict";
import { accessSync, constants } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { build, type PreviewServer, preview } from "vite";

const {
  TOOLBUS_URL: gateway = "http://127.0.0.1:7480",
  TOOLBUS_API_KEY: key = "",
  TOOLBUS_PAGE_PORT: port = "7490",
  TOOLBUS_CHROMIUM: executablePath = "/usr/bin/chromium",
} = process.env;
const withoutNoise = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

await using stack = new AsyncDisposableStack();
stack.adopt(await servePage(), (server) => server.close());
const browser = stack.use(await openBrowser());

await showsARun("connect", ["application/json", "application/connect+json"]);
await showsARun("grpc-web", ["application/grpc-web+proto"]);
await showsARefusal("connect");
await showsARefusal("grpc-web");
await showsNothingToOtherOrigins();

/** A page of the given origin, filled in and sent, once it shows how it went. */
async function openPage(origin: string, fields: Record<string, string>): Promise<{ page: Page; sent: Set<string> }> {
  const page = await browser.newPage();
  const sent = new Set<string>();
  page.on("request", (request) => {
    if (request.url().startsWith(gateway) && request.method() === "POST")
      sent.add(request.headers()["content-type"] ?? "");
  });
  await page.goto(origin);
  const { protocol = "connect", ...inputs } = { url: gateway, key, ...fields };
  await page.selectOption("select[name=protocol]", protocol);
  for (const [name, value] of Object.entries(inputs)) await page.fill(`input[name=${name}]`, value);
  await page.click("button");
  await page.locator("#outcome:not(:empty)").waitFor({ timeout: 30_000 });
  return { page, sent };
}

async function showsARun(protocol: string, contentTypes: readonly string[]): Promise<void> {
  const text = `hello by ${protocol}`;
  const { page, sent } = await openPage(`http://127.0.0.1:${port}`, { protocol, text });
  const tools = await page.locator("#tools li").allTextContents();
  const events = await page.locator("#events li").allTextContents();
  const outcome = await page.locator("#outcome").textContent();
  console.log(`${protocol}: ${tools.length} tools; ${events.join(", ")}; ${outcome}`);
  assert.ok(tools.includes("everything__echo"), "the page does not list the tools");
  assert.equal(await page.locator("#answer").textContent(), text);
  assert.equal(events.at(0), "accepted");
  assert.equal(events.at(-1), "ended");
  assert.ok(
    outcome?.startsWith("RUN_STATE_COMPLETED: ") && outcome.includes(text),
    "the run did not complete with the text",
  );
  assert.deepEqual([...sent].toSorted(), contentTypes.toSorted());
  await page.close();
}

async function showsARefusal(protocol: string): Promise<void> {
  const { page } = await openPage(`http://127.0.0.1:${port}`, { protocol, agent: "nobody" });
  const outcome = await page.locator("#outcome").textContent();
  console.log(`${protocol}: ${outcome}`);
  assert.match(outcome ?? "", /^\[not_found\] .*nobody.* \(REASON_AGENT_NOT_FOUND\)$/);
  await page.close();
}

/** The same page by another name of this machine: the gateway knows one origin, and the browser holds the other to it. */
async function showsNothingToOtherOrigins(): Promise<void> {
  const { page } = await openPage(`http://localhost:${port}`, {});
  const outcome = await page.locator("#outcome").textContent();
  console.log(`from another origin: ${outcome}`);
  assert.equal(outcome, "[unknown] Failed to fetch");
  assert.deepEqual(await page.locator("li").allTextContents(), []);
  await page.close();
}

async function servePage(): Promise<PreviewServer> {
  const root = fileURLToPath(new URL(".", import.meta.url));
  const outDir = fileURLToPath(new URL("../../../.toolbus/clients/page", import.meta.url));
  const common = { root, configFile: false, logLevel: "warn" } as const;
  await build({ ...common, build: { outDir, emptyOutDir: true, target: "esnext" } });
  return preview({
    ...common,
    build: { outDir },
    preview: { host: "127.0.0.1", port: Number(port), strictPort: true },
  });
}

async function openBrowser(): Promise<Browser> {
  try {
    accessSync(executablePath, constants.X_OK);
  } catch (cause) {
    const advice = "install it (apt-get install chromium), or say in TOOLBUS_CHROMIUM where one is";
    throw new Error(`there is no Chromium at ${executablePath}: ${advice}`, { cause });
  }
  return chromium.launch({ executablePath, args: withoutNoise });
}
