import { expect, it } from "vitest";
import { Failure } from "#runtime/failure/failure.ts";
import { type Exchange, readJson, retryAfterOf, statusOf } from "./exchange.ts";

it.each([
  [{ "content-type": "application/json", "content-encoding": "gzip" }, "compressed (gzip)"],
  [{ "content-type": "text/plain", "content-encoding": "Identity" }, "must be JSON"],
])("SEC-6 a body that is compressed, or says to be no JSON, is refused as such: %j", async (headers, text) => {
  const reading = readJson({ request: { headers } } as unknown as Exchange, 9);
  await expect(reading).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringContaining(text) });
});

it.each([
  ["MESSAGE_TOO_LARGE", {}, 413, undefined],
  ["SHARE_EXCEEDED", {}, 429, "1"],
  ["SHARE_EXCEEDED", { retry_in_ms: "5000" }, 429, "5"],
  ["WORKER_POOL_FULL", {}, 429, undefined],
  ["WORKER_BACKED_OFF", { retry_in_ms: "1200" }, 429, "2"],
  ["STORE_FULL", {}, 429, undefined],
] as const)(
  "SEC-6 what is exhausted (%s) is told so that clients do the right thing",
  (reason, metadata, status, after) => {
    const failure = new Failure("resource_exhausted", "no", { reason, metadata });
    expect([statusOf(failure), retryAfterOf(failure)]).toEqual([status, after]);
  },
);
