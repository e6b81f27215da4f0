import { create } from "@bufbuild/protobuf";
import { expect, test, vi } from "vitest";
import { WatchCallerResponseSchema } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { type AttachedCaller, attachCaller } from "./attached-caller.ts";

test("CTR-7 a client is its session's caller again when the relay was away for 20 s", async () => {
  vi.useFakeTimers();
  const beganMs = performance.now();
  const told: unknown[] = [];
  const left = new AbortController();
  async function* watchCaller() {
    const awayMs = performance.now() - beganMs;
    if (awayMs > 0 && awayMs < 20_000) throw connectError("unavailable", "no relay", { reason: "SERVICE_UNAVAILABLE" });
    yield create(WatchCallerResponseSchema, { event: { case: "attached", value: {} } });
    if (awayMs === 0) return;
    yield create(WatchCallerResponseSchema, { event: { case: "request", value: { requestId: "r" } } });
    await new Promise((resolve) => left.signal.addEventListener("abort", resolve));
  }
  const caller = {
    callers: { watchCaller },
    sessionId: "s",
    options: { signal: left.signal },
    notify: async (notification: unknown) => void told.push(notification),
  };
  using _ = await attachCaller(caller as unknown as AttachedCaller);
  await vi.advanceTimersByTimeAsync(25_000);
  left.abort();
  vi.useRealTimers();
  expect(told).toMatchObject([{ params: { request_id: "r" } }]);
});
