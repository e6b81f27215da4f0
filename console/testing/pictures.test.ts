// Every screen in light and dark, wide and on a phone: nothing stands over the edge. The pictures lie in `.toolbus/console`;
// `npm run console:pictures` puts them into `docs/console`.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectRoot } from "../../test/architecture/source-files.ts";
import { openStage, type Stage } from "./stage.ts";

const folder = join(projectRoot, process.env.TOOLBUS_PICTURES ?? ".toolbus/console");
const stack = new AsyncDisposableStack();
let stage: Stage;
let places: Record<string, string> = {};

beforeAll(async () => {
  stage = stack.use(await openStage());
  const runId = await stage.run("shop", "4711");
  for (const text of ["Where is my parcel?", "Thank you", "And the other one?"]) await stage.run("clerk", text);
  places = {
    overview: "overview",
    runs: "runs",
    run: `runs/${runId}`,
    inbox: "inbox",
    tools: "tools/shop?tool=ship_order",
    agents: "agents/shop",
    spaces: "spaces/desk",
    audit: "audit",
  };
});
afterAll(() => stack.disposeAsync());

const drawn: Record<string, string> = {
  overview: ".badge.wait",
  runs: ".badge.wait",
  run: "article",
  inbox: "article",
  tools: ".way li",
  agents: ".session-row",
  spaces: "article",
  audit: ".audit-row",
};

const viewports = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
];

describe.each(viewports)("at $width pixels", (viewport) => {
  it.each(["light", "dark"] as const)("in %s, every screen fits", async (colorScheme) => {
    const page = await stage.open("", { viewport, colorScheme });
    for (const [name, place] of Object.entries(places)) {
      await page.evaluate((hash) => {
        location.hash = hash;
      }, `#/${place}`);
      await page
        .locator(drawn[name] ?? "")
        .first()
        .waitFor();
      if (name === "overview") await page.getByText(/^MCP servers: \d+ healthy/).waitFor();
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      await page.screenshot({ path: join(folder, `${colorScheme}-${viewport.width}`, `${name}.png`) });
      expect(over, `${name} stands over the edge by so many pixels`).toBeLessThanOrEqual(0);
    }
    await page.context().close();
  });
});
