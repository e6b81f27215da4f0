import { expect, test } from "vitest";
import { createToolbus } from "./toolbus.ts";

test.each([
  ["http://127.0.0.1:1", /^http:\/\/127\.0\.0\.1:1 cannot be reached: (bad port|connect ECONNREFUSED)/],
  ["http://127.0.0.1:65533", /^http:\/\/127\.0\.0\.1:65533 cannot be reached: connect ECONNREFUSED/],
  ["nowhere", /^nowhere cannot be reached: Invalid URL$/],
])("PROD-2 a suite at %s that cannot be reached is named by its address, with what is wrong", async (url, message) => {
  const opening = createToolbus({ url, apiKey: "", patienceMs: 0 }).openSpace("desk");
  await expect(opening).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(message) });
});
