import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { InputRequiredSchema } from "#gen/toolbus/provider/v1/input_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { startedNothing } from "#runtime/failure/not-started.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { createMemoryCalls } from "../../testing/fakes/memory-calls.ts";
import { MemoryOffers, MemoryPresence } from "../../testing/fakes/memory-watchers.ts";
import { entryOf, tool } from "../../testing/fakes/tools.ts";
import type { ToolEntry } from "../../tools/tool-set/tool-set.ts";
import { failure, success } from "../answers/answer.ts";
import { createOutside } from "../execute/outside.ts";
import { createAbsence } from "../watchers/absence.ts";
import { Records } from "./records.ts";
import type { CallStore } from "./store.ts";

const signal = new AbortController().signal;
const facts = { callId: "c1", sessionId: "s1", runId: "r1", agent: "a1", tool: "risky", calledAs: "mine" };
const web = { execution: { url: "https://example.org/" }, executionType: ExecutionType.GATEWAY };
const risky = entryOf(tool("risky", { ...web, effect: Effect.AT_MOST_ONCE }));
const ofCaller = { kind: "provider", provider: "caller", source: undefined, tool: "ask", isResumable: true } as const;
const resumable: ToolEntry = { ...risky, executor: ofCaller };
const asked = entryOf(tool("asked", { executionType: ExecutionType.SPACE }));

function open(held = new Set<string>()) {
  const waiters = new KeyedListeners();
  const calls = createMemoryCalls(waiters, held);
  return {
    ...calls,
    waiters,
    records: new Records({ ...calls, waiters, executing: new Set() }),
    standing: calls.records,
  };
}

describe("recorded calls", () => {
  test("LOOP-14 only what must not happen twice is recorded, before it happens and after", async () => {
    const { records, standing } = open();
    const pure = entryOf(tool("pure", { ...web, effect: Effect.PURE }));
    expect(await records.begin(pure, facts, 0, { signal })).toEqual({ kind: "unrecorded" });
    expect(await records.begin(risky, facts, 0, { signal })).toEqual({ kind: "begun" });
    expect(standing.get("c1")?.state).toBe(State.STARTED);
    await records.finish("c1", success("done"));
    expect(standing.get("c1")).toMatchObject({ state: State.RESOLVED, result: { outputJson: '"done"' } });
    expect(await records.begin(risky, facts, 0, { signal })).toMatchObject({
      kind: "resolved",
      answer: { outputJson: '"done"' },
    });
  });

  test("TOOL-4 a call that cannot be shown has an unknown outcome where the store is full, as a watcher may have it yet", async () => {
    const { waiters, ...calls } = open();
    const update: CallStore["update"] = async () => refuse("resource_exhausted", "full", { reason: "STORE_FULL" });
    const store = { ...calls.store, update };
    const records = new Records({ ...calls, store, waiters, executing: new Set() });
    await records.begin(asked, facts, 0, { signal });
    const abandoned = await records.abandon("c1", failure("not shown")).catch((error: unknown) => error);
    expect(abandoned).toMatchObject({ reason: "OUTCOME_UNKNOWN" });
    expect(startedNothing(abandoned)).toBe(false);
  });

  test("records-5 a call that waits for answers goes on where it was taken over, and its former router sends them no more", async () => {
    const held = new Set<string>();
    const { store, waiters, running, tasks, records: former, standing } = open(held);
    await former.begin(risky, facts, 0, { signal });
    const required = create(InputRequiredSchema, { requests: [{ id: "1" }], state: new Uint8Array([7]) });
    const suspended = await former.suspend("c1", required);
    const other = new Records({ store, running, tasks, waiters, executing: new Set() });
    const recalled = { ...facts, name: "mine", argumentsJson: "" };
    expect(await other.recall(recalled, signal), "it is admitted anew").toBeUndefined();
    const taken = await other.begin(risky, facts, 0, { signal });
    expect(taken).toMatchObject({ kind: "begun", suspended: { required: { state: new Uint8Array([7]) } } });
    if (taken.kind !== "begun" || taken.suspended === undefined) throw new Error(taken.kind);

    held.add("c1");
    const follows = former.resume("c1", suspended, signal);
    expect(await other.resume("c1", taken.suspended, signal), "the answers are its to send").toBeUndefined();
    expect(standing.get("c1")?.inputRequired).toBeUndefined();
    await other.finish("c1", success("done"));
    expect((await follows)?.outputJson).toBe('"done"');
  });

  test("records-5 a router that is lost after the answers were sent leaves an unknown outcome", async () => {
    const { records } = open();
    await records.begin(risky, facts, 0, { signal });
    const suspended = await records.suspend("c1", create(InputRequiredSchema, {}));
    expect(await records.resume("c1", suspended, signal)).toBeUndefined();
    expect(await records.begin(risky, facts, 0, { signal })).toMatchObject({
      kind: "resolved",
      answer: { outputJson: expect.stringContaining("outcome_unknown: ") },
    });
  });

  test("records-3 a call that no router executes any more has an unknown outcome, and a late finish changes nothing", async () => {
    const { records, standing } = open();
    await records.begin(risky, facts, 0, { signal });
    const again = await records.begin(risky, facts, 0, { signal });
    expect(again).toMatchObject({
      kind: "resolved",
      answer: { isError: true, outputJson: expect.stringContaining("outcome_unknown: ") },
    });
    const late = await records.finish("c1", success("too late"));
    expect(late.outputJson).toContain("outcome_unknown: ");
    expect(standing.get("c1")?.result).toBe(late);
  });

  test("records-3 CTR-7 a call that its provider goes on with is asked of it again by another router, once nobody executes it", async () => {
    const { store, waiters, running, tasks, records: former, standing } = open();
    await former.begin(resumable, facts, 0, { signal });
    const other = new Records({ store, running, tasks, waiters, executing: new Set() });
    const recalled = { ...facts, name: "mine", argumentsJson: "" };
    expect(await other.recall(recalled, signal), "it is admitted anew").toBeUndefined();
    expect(await other.begin(resumable, facts, 0, { signal })).toEqual({ kind: "begun", resumed: true });
    await other.finish("c1", success("of the caller"));
    expect((await former.finish("c1", success("too late"))).outputJson).toBe('"of the caller"');
    expect(standing.get("c1")?.state).toBe(State.RESOLVED);
  });

  test("records-3 a call of a provider that goes on with it is not asked of another one that does not", async () => {
    const { records } = open();
    await records.begin(resumable, facts, 0, { signal });
    expect(await records.begin(risky, facts, 0, { signal })).toMatchObject({
      kind: "resolved",
      answer: { outputJson: expect.stringContaining("outcome_unknown: ") },
    });
  });

  test("records-3 a call that is not admitted any more when it is repeated has an unknown outcome if it was begun", async () => {
    const { records } = open();
    const repeated = { ...facts, name: "mine", argumentsJson: "" };
    expect(await records.endBegun(repeated, signal), "it was not begun").toBeUndefined();
    await records.begin(resumable, facts, 0, { signal });
    expect((await records.endBegun(repeated, signal))?.outputJson).toContain("outcome_unknown: ");
  });

  test("records-3 a call that is not admitted any more when it is repeated has its answer if another router has gone on with it", async () => {
    const held = new Set(["c1"]);
    const { records } = open(held);
    await records.begin(resumable, facts, 0, { signal });
    const ended = records.endBegun({ ...facts, name: "mine", argumentsJson: "" }, signal);
    await records.finish("c1", success("theirs"));
    expect((await ended)?.outputJson).toBe('"theirs"');
  });

  test("a call that another router executes is waited for, and its answer given", async () => {
    const { records } = open(new Set(["c1"]));
    await records.begin(risky, facts, 0, { signal });
    const joining = records.begin(risky, facts, 0, { signal });
    await records.finish("c1", success("theirs"));
    expect(await joining).toMatchObject({ kind: "resolved", answer: { outputJson: '"theirs"' } });
  });

  test("records-3 a router whose creation of the record is not yet acknowledged already says that it executes the call", async () => {
    const waiters = new KeyedListeners();
    const executing = new Set<string>();
    const { store, running, tasks } = createMemoryCalls(waiters, executing);
    const acknowledged = Promise.withResolvers<void>();
    const create: CallStore["create"] = async (record) => {
      const isCreated = await store.create(record);
      await acknowledged.promise;
      return isCreated;
    };
    const first = new Records({ store: { ...store, create }, running, tasks, waiters, executing });
    const second = new Records({ store, running, tasks, waiters, executing: new Set() });
    const beginning = first.begin(risky, facts, 0, { signal });
    const following = second.begin(risky, facts, 0, { signal });
    acknowledged.resolve();
    expect(await beginning).toEqual({ kind: "begun" });
    await first.finish("c1", success("done"));
    expect(await following).toMatchObject({ kind: "resolved", answer: { outputJson: '"done"' } });
  });

  test("a router that lost the race for a call does not say that it executes it", async () => {
    const waiters = new KeyedListeners();
    const executing = new Set<string>();
    const { store, running, tasks } = createMemoryCalls(waiters);
    await new Records({ store, running, tasks, waiters, executing: new Set() }).begin(risky, facts, 0, { signal });
    await new Records({ store, running, tasks, waiters, executing }).begin(risky, facts, 0, { signal });
    expect([...executing]).toEqual([]);
  });

  test("LOOP-14 recalling a started call waits for who executes it, and tells its outcome as unknown without one", async () => {
    const { records, standing } = open();
    const call = { callId: "c1", sessionId: "s1", runId: "r1", name: "mine", argumentsJson: "{}" };
    expect(await records.recall(call, signal)).toBeUndefined();
    await records.begin(risky, facts, 0, { signal });
    for (const other of [{ runId: "r2" }, { name: "yours" }, { argumentsJson: '{"a":1}' }]) {
      expect(await records.recall({ ...call, ...other }, signal)).toBeUndefined();
    }
    expect(standing.get("c1")?.state).toBe(State.STARTED);
    expect((await records.recall(call, signal))?.outputJson).toContain("outcome_unknown: ");
    expect(standing.get("c1")?.state).toBe(State.RESOLVED);
  });

  test("an id is one call's: another session, run, agent, tool or other arguments are refused by name", async () => {
    const { records } = open();
    await records.begin(risky, facts, 0, { signal });
    const others = {
      session: { sessionId: "s2" },
      run: { runId: "r2" },
      agent: { agent: "a2" },
      tool: { tool: "other" },
      arguments: { argumentsJson: '{"a":1}' },
      "run, arguments": { runId: "r2", argumentsJson: '{"a":1}' },
    };
    for (const [what, other] of Object.entries(others)) {
      const message = `belongs to another call, which differs in ${what}`;
      await expect(records.begin(risky, { ...facts, ...other }, 0, { signal })).rejects.toThrow(message);
    }
    expect((await records.begin(risky, { ...facts, argumentsJson: " {} " }, 0, { signal })).kind).toBe("resolved");
  });
});

describe("calls that somebody outside answers", () => {
  function outsideOf({ store, waiters }: ReturnType<typeof open>, clock: Clock) {
    const absence = createAbsence(new MemoryPresence(), clock, { stopping: signal, onFault: () => {} });
    return createOutside({ store, waiters, queue: new MemoryOffers(), absence, audit: () => {}, clock });
  }
  async function begin(parts: ReturnType<typeof open>) {
    const begun = await parts.records.begin(asked, { ...facts, tool: "asked" }, 0, { signal });
    if (begun.kind !== "open") throw new Error(begun.kind);
    return begun;
  }
  const resolve = ({ store }: ReturnType<typeof open>) =>
    store.update("c1", (record) => ({ ...record, state: State.RESOLVED, result: success("yes") }));
  const deadline = { at: 1_000, timeoutMs: 1_000 };

  test("TOOL-8 an answer that came before anybody waited is not missed", async () => {
    const parts = open();
    const begun = await begin(parts);
    await resolve(parts); // and no news of it goes out
    const outside = outsideOf(parts, createManualClock());
    expect((await outside.execute(begun, false, deadline, signal)).outputJson).toBe('"yes"');
  });

  test("TOOL-4 at the timeout nobody waits any more; the answer that came at the same moment wins", async () => {
    for (const isAnswered of [false, true]) {
      const parts = open();
      const clock = createManualClock();
      const begun = await begin(parts);
      const waiting = outsideOf(parts, clock).execute(begun, false, deadline, signal);
      await until(() => clock.sleeping === 1);
      if (isAnswered) await resolve(parts); // its news is lost
      await clock.advance(1_000);
      expect((await waiting).outputJson).toBe(isAnswered ? '"yes"' : '{"error":"Tool timed out after 1000ms"}');
      expect(parts.standing.get("c1")?.state).toBe(isAnswered ? State.RESOLVED : State.PENDING);
    }
  });

  test("TOOL-4 a call whose time went by before anybody could wait leaves nobody waiting", async () => {
    const parts = open();
    const clock = createManualClock(5_000);
    const outside = outsideOf(parts, clock);
    const answer = await outside.execute(await begin(parts), false, deadline, signal);
    expect(answer.outputJson).toBe('{"error":"Tool timed out after 1000ms"}');
    expect(parts.standing.get("c1")?.state).toBe(State.PENDING);
  });

  test("a caller that went away and comes back within the call's time waits for the same call", async () => {
    const parts = open();
    const clock = createManualClock();
    const outside = outsideOf(parts, clock);
    const begun = await begin(parts);
    const leaving = new AbortController();
    const left = outside.execute(begun, false, deadline, leaving.signal);
    await until(() => clock.sleeping === 1);
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    expect(parts.standing.get("c1")?.state).toBe(State.PENDING);
    const back = outside.execute(await begin(parts), false, deadline, signal);
    await until(() => parts.standing.get("c1")?.state === State.WAITING);
    await resolve(parts);
    parts.waiters.notify("c1");
    expect((await back).outputJson).toBe('"yes"');
  });
});
