import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { ExecuteToolRequestSchema, ScopeSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { createCalls } from "../requests/calls.ts";
import type { StreamRecord } from "../streams/stream-record.ts";
import type { Declarations } from "./declarations.ts";
import { createRelay, heldCall } from "./relay.ts";

const kept = create(ToolResultSchema, { outputJson: "1" });

const ended = new Failure("not_found", "the call is not held here", { reason: "CALL_NOT_FOUND" });
const stopping = new Failure("unavailable", "the service is stopping", { reason: "INSTANCE_STOPPING" });

/** A relay that is told that another instance holds every call. */
const openRelay = (fault: Failure) =>
  createRelay({
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
    join: () => Promise.reject(fault),
  });
const scope = create(ScopeSchema, { sessionId: "s", agent: "a" });
const requestOf = (more: MessageInitShape<typeof ExecuteToolRequestSchema>) =>
  create(ExecuteToolRequestSchema, { callId: "r", tool: "app_ask", scope, ...more });
const call = (fault: Failure, resumed: boolean) =>
  openRelay(fault).call(requestOf({ resumed }), { signal: new AbortController().signal, tell: () => undefined });

test("CTR-7 a call that ends as it is asked for again is not told as none: its end is looked for", async () => {
  expect(await call(ended, true)).toBe(kept);
});

test("CTR-7 a call whose holder stops, and may still be found, goes on where it is asked for again", async () => {
  expect(await call(stopping, true)).toBe(kept);
});

test("CTR-7 a call that was not lost is not begun again because it ended elsewhere", async () => {
  await expect(call(ended, false)).rejects.toBe(ended);
});

test.each([
  ["its caller's time", false, { isCapped: true, timeoutMs: 600 }],
  ["the rest of its own time, when it is asked for again", true, { isCapped: false, timeoutMs: 2_000 }],
])("CTR-6 a call has %s", (_, resumed, expected) => {
  const clock = createManualClock();
  const declaration = create(CallerDeclarationSchema, { callerId: "app", tools: [{ name: "ask" }] });
  const request = requestOf({ resumed, deadline: timestampFromMs(clock.now() + 600) });
  const held = heldCall(request, declaration, { clock, defaultTimeoutMs: 2_000 });
  expect(held).toMatchObject({ ...expected, expiresAtMs: clock.now() + 600 });
});
