import { isLegacyRequest, PROTOCOL_VERSION_META_KEY } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { namesRevision } from "./named-revision.ts";

const revision = fc.constantFrom<unknown>("2026-07-28", "2025-11-25", "", 7, null);
const params = fc.record({ _meta: fc.record({ [PROTOCOL_VERSION_META_KEY]: revision }) });
const message = {
  jsonrpc: fc.constantFrom<unknown>("2.0", "1.0", 2),
  id: fc.constantFrom<unknown>(1, "one", null, {}),
  method: fc.constantFrom<unknown>("tools/call", "initialize", "notifications/canceled", 7),
  params: fc.oneof(params, fc.jsonValue()),
};
const answer = {
  result: fc.constantFrom<unknown>({}, null),
  error: fc.constantFrom<unknown>({ code: 1, message: "fault" }, null),
};
const body = fc.oneof(
  fc.record(message, { requiredKeys: ["method", "params"] }),
  fc.record({ ...message, ...answer }, { requiredKeys: [] }),
  fc.jsonValue(),
);
const version = fc.constantFrom("2026-07-28", "2025-11-25", undefined);

test("DOOR-1 what names its revision in itself is never the older protocol's, as the SDK says", async () => {
  let count = 0;
  const isTrue = fc.asyncProperty(body, version, async (posted, named) => {
    if (!namesRevision(posted)) return;
    count += 1;
    const headers = { "content-type": "application/json", ...(named && { "mcp-protocol-version": named }) };
    const request = new Request("http://door/mcp/agent", { method: "POST", headers });
    expect(await isLegacyRequest(request, posted)).toBe(false);
  });
  await fc.assert(isTrue, { numRuns: 2_000 });
  expect(count).toBeGreaterThan(50);
});
