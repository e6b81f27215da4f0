import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { ExecuteToolRequestSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { createManualClock } from "#runtime/time/manual-clock.ts";
import { createCalls } from "../requests/calls.ts";
import type { StreamRecord } from "../streams/stream-record.ts";
import type { Declarations } from "./declarations.ts";
import { createRelay } from "./relay.ts";

const kept = create(ToolResultSchema, { outputJson: "1" });

/** A relay that is told that another instance holds every call, which has just ended there. */
const relay = createRelay({
  instance: "here",
  defaultTimeoutMs: 1_000,
  declarations: {
    read: async () => create(CallerDeclarationSchema, { callerId: "app", tools: [{ name: "ask" }] }),
  } as unknown as Declarations,
  records: createMemoryBucket<StreamRecord>(),
  calls: createCalls(),
  holders: { announce: () => ({ [Symbol.dispose]() {} }), locate: async () => "there" },
  clock: createManualClock(),
  stopping: new AbortController().signal,
  hold: async () => kept,
  join: async () => refuse("not_found", "the call is not held here", { reason: "CALL_NOT_FOUND" }),
});
const call = (resumed: boolean) => {
  const scope = { sessionId: "s", agent: "a" };
  const request = create(ExecuteToolRequestSchema, { callId: "r", tool: "app_ask", scope, resumed });
  return relay.call(request, { signal: new AbortController().signal, tell: () => undefined });
};

test("CTR-7 a call that ends as it is asked for again is not told as none: its end is looked for", async () => {
  expect(await call(true)).toBe(kept);
});

test("CTR-7 a call that was not lost is not begun again because it ended elsewhere", async () => {
  await expect(call(false)).rejects.toMatchObject({ reason: "CALL_NOT_FOUND" });
});
