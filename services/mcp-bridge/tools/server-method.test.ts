import { expect, test } from "vitest";
import { askMethod } from "./server-method.ts";

test("SEC-5 of a page with very many resources the first are told", async () => {
  const resources = Array.from({ length: 500_000 }, (_, index) => ({ uri: `odd://${index}` }));
  const { structuredContent } = await askMethod(async () => ({ resources }), "resources/list", {});
  expect(structuredContent?.items).toEqual(resources.slice(0, 10_000));
});
