import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { CallHeldSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import type { CallEvent, TellCall, Waiter } from "../requests/calls.ts";
import { waitOnBehalf } from "./patience.ts";

const lost = new Failure("unavailable", "the router is silent", { reason: "OUTCOME_UNKNOWN" });
const canceled = new Failure("canceled", "the router has canceled the call", { reason: "CANCELED" });
const heldFor = (graceMs: number): CallEvent => ({
  case: "held",
  value: create(CallHeldSchema, { takeoverGrace: durationFromMs(graceMs) }),
});

/** A call that somebody waits for, of whom the domain knows what `ours` says. */
async function openWait(tell: TellCall = () => undefined) {
  const clock = createManualClock();
  const asking = new AbortController();
  const stopping = new AbortController();
  const result = Promise.withResolvers<string>();
  const entered = Promise.withResolvers<Waiter>();
  const waited = waitOnBehalf({ clock, stopping: stopping.signal }, { signal: asking.signal, tell }, (ours) => {
    entered.resolve(ours);
    return result.promise;
  });
  waited.catch(() => {}); // told to who looks
  return { clock, asking, stopping, result, waited, ours: await entered.promise };
}

test("CTR-7 whoever waits gets the result", async () => {
  const { result, waited, ours } = await openWait();
  result.resolve("1");
  expect(await waited).toBe("1");
  expect(ours.signal.aborted).toBe(false);
});

test("LOOP-15 a router that cancels leaves its call at once", async () => {
  const { asking, waited, ours } = await openWait();
  asking.abort(canceled);
  await expect(waited).rejects.toBe(canceled);
  await Promise.resolve();
  expect(ours.signal.reason).toBe(canceled);
});

test("CTR-7 of a router that is lost, the call is left once no other one can be expected to ask for it", async () => {
  const { clock, asking, waited, ours } = await openWait();
  asking.abort(lost);
  await expect(waited).rejects.toBe(lost);
  await clock.advance(4_999);
  expect(ours.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(ours.signal.reason).toBe(lost);
});

test("CTR-7 the call of a lost router is not left within the grace that it was told", async () => {
  const { clock, asking, ours } = await openWait();
  void ours.tell(heldFor(20_000));
  asking.abort(lost);
  await new Promise(setImmediate);
  await clock.advance(19_999);
  expect(ours.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(ours.signal.aborted).toBe(true);
});

test("LOOP-15 of a router that is lost, the call is left once another one waits for it: a cancel of that one reaches the caller", async () => {
  for (const isJoinedFirst of [true, false]) {
    const { asking, waited, ours } = await openWait();
    void ours.tell(heldFor(20_000));
    if (isJoinedFirst) ours.onOthers?.(true);
    asking.abort(lost);
    await expect(waited).rejects.toBe(lost);
    if (!isJoinedFirst) ours.onOthers?.(true);
    await new Promise(setImmediate);
    expect(ours.signal.reason).toBe(lost);
  }
});

test("CTR-7 of a router that is lost, the call is not left for one that had joined it and has gone", async () => {
  const { clock, asking, ours } = await openWait();
  ours.onOthers?.(true);
  ours.onOthers?.(false);
  asking.abort(lost);
  await new Promise(setImmediate);
  await clock.advance(4_999);
  expect(ours.signal.aborted).toBe(false);
});

test("CTR-7 an instance that stops leaves no call of a router that is lost", async () => {
  const { clock, asking, stopping, ours } = await openWait();
  stopping.abort();
  asking.abort(lost);
  await new Promise(setImmediate);
  await clock.advance(60_000);
  expect(ours.signal.aborted).toBe(false);
});

test("CTR-7 a request does not wait for a router that is lost to hear of the grace", async () => {
  const { asking, ours } = await openWait(() => new Promise(() => {})); // it never comes back for more
  const told = ours.tell(heldFor(1));
  asking.abort(lost);
  await told;
});
