import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { createMemoryCalls } from "../../testing/fakes/memory-calls.ts";
import { MemoryOffers } from "../../testing/fakes/memory-watchers.ts";
import { callRecord } from "../records/record/call-record.ts";
import { createOutside } from "./outside.ts";

function open() {
  const clock = createManualClock(1_000_000);
  const waiters = new KeyedListeners();
  const { store, records } = createMemoryCalls(waiters);
  const offers = new MemoryOffers();
  let onAbsent = () => {};
  const follow = (_tool: string, tell: () => void) => {
    onAbsent = tell;
    return () => {};
  };
  const outside = createOutside({ store, waiters, queue: offers, absence: { follow }, audit: () => {}, clock });
  const createdAt = timestampFromMs(clock.now());
  const facts = {
    callId: "c",
    tool: "weigh",
    executionType: ExecutionType.EXTERNAL,
    state: State.WAITING,
    createTime: createdAt,
  };
  const record = callRecord(facts);
  records.set("c", record);
  const deadline = { at: clock.now() + 1_500, timeoutMs: 1_500 };
  const answered = outside.execute({ record, isMine: true }, false, deadline, new AbortController().signal);
  return { clock, records, offers, answered, tellAbsent: () => onAbsent() };
}

test("TOOL-6 a call that nobody watches for ends as that while its caller waits", async () => {
  const { answered, tellAbsent, offers } = open();
  await until(() => offers.standing.size === 1);
  tellAbsent();
  expect((await answered).outputJson).toContain("has no watcher");
});

test("TOOL-5 TOOL-9 a call whose caller has given up waits for the next watcher, whoever is there at that moment", async () => {
  const { clock, answered, tellAbsent, records, offers } = open();
  await until(() => offers.standing.size === 1);
  await clock.advance(1_500);
  expect((await answered).outputJson).toContain("timed out");
  tellAbsent(); // it was on its way
  await Promise.resolve();
  expect(records.get("c")?.state).toBe(State.PENDING);
  expect(records.get("c")?.result).toBeUndefined();
  expect(offers.standing.size).toBe(1);
});
