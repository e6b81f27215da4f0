import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  WatchProvidedToolsRequestSchema,
  type WatchProvidedToolsResponse,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import { type OfferWatchParts, watchTools } from "./offer-watch.ts";

test("a source that fails in the same way again and again is told once", async () => {
  let attempts = 0;
  const askedOf = () => {
    attempts += 1;
    return refuse("not_found", "there is no MCP server none", { reason: "MCP_SERVER_NOT_FOUND" });
  };
  const parts = { provider: { askedOf } } as unknown as OfferWatchParts;
  const over = new AbortController();
  const told: WatchProvidedToolsResponse[] = [];
  const request = create(WatchProvidedToolsRequestSchema, { sources: [{ name: "none" }] });
  const watching = (async () => {
    for await (const snapshot of watchTools(request, { signal: over.signal, hops: 0 }, parts)) told.push(snapshot);
  })().catch(() => {}); // left by its signal
  await until(() => attempts >= 5);
  over.abort();
  await watching;
  expect(told.map(({ sources }) => sources.map(({ reason }) => reason))).toEqual([["there is no MCP server none"]]);
});
