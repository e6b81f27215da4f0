import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test, vi } from "vitest";
import { McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import {
  WatchProvidedToolsRequestSchema,
  type WatchProvidedToolsResponse,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
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
    for await (const snapshot of watchTools(request, { signal: over.signal, isPeer: false }, parts))
      told.push(snapshot);
  })().catch(() => {}); // left by its signal
  await until(() => attempts >= 5);
  over.abort();
  await watching;
  expect(told.map(({ sources }) => sources.map(({ reason }) => reason))).toEqual([["there is no MCP server none"]]);
});

test("ORCH-10 what a source offers holds while its instance stops, however long that had nothing new to tell", async () => {
  const over = new AbortController();
  const clock = performance.now.bind(performance);
  using later = vi.spyOn(performance, "now");
  let attempts = 0;
  const peerOf = () => ({
    async *watchTools() {
      attempts += 1;
      yield { tools: [], sources: [create(SourceStatusSchema, { source: "held" })] };
      later.mockImplementation(() => clock() + 60_000);
      if (attempts > 1) over.abort();
      refuse("unavailable", "this instance stops: watch again", { reason: "INSTANCE_STOPPING" });
    },
  });
  const provider = { askedOf: () => ({ server: create(McpServerSchema) }) };
  const connections = { locate: async () => ({ kind: "there", instance: "one" }) };
  const parts = { connections, provider, peerOf } as unknown as OfferWatchParts;
  const request = create(WatchProvidedToolsRequestSchema, { sources: [{ name: "held" }] });
  const reasons: string[] = [];
  const watching = async () => {
    for await (const { sources } of watchTools(request, { signal: over.signal, isPeer: false }, parts))
      reasons.push(...sources.map(({ reason }) => reason));
  };
  await watching().catch(() => {}); // left by its signal
  expect(reasons).toEqual([""]);
});

test("a watch whose sources have all been told waits for no first snapshot any more", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const peerOf = () => ({
    async *watchTools(_: unknown, signal: AbortSignal) {
      yield { tools: [], sources: [create(SourceStatusSchema, { source: "held" })] };
      await once(signal, "abort");
    },
  });
  const provider = { askedOf: () => ({ server: create(McpServerSchema) }) };
  const connections = { locate: async () => ({ kind: "there", instance: "one" }) };
  const parts = { connections, provider, peerOf } as unknown as OfferWatchParts;
  const request = create(WatchProvidedToolsRequestSchema, { sources: [{ name: "held" }] });
  const watching = watchTools(request, { signal: new AbortController().signal, isPeer: false }, parts);
  await watching.next();
  expect(vi.getTimerCount()).toBe(0);
  await watching.return(undefined);
});
