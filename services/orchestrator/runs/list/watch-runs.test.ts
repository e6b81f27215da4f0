import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Role, RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { WatchRunsRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { type Caller, callerNamed, SELF } from "#runtime/rpc/identity.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { keptBytes } from "../../../../runtime/collections/testing/kept-bytes.ts";
import type { EventBody } from "../../log/journal.ts";
import type { StoredEvent } from "../../log/state/log-record.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import type { Bounds } from "./recent-changes.ts";
import { createRunChanges, type DeletedRun } from "./run-changes.ts";
import { watchRuns } from "./watch-runs.ts";

/** The store of runs, and what is read of it. */
function openStore(bounds?: Bounds) {
  const log = createMemoryRunLog();
  const stored: StoredEvent[] = [];
  const counts = { reads: 0, followers: 0 };
  const failures = { reads: 0, follows: 0 };
  const deletedListeners = new Set<(deleted: DeletedRun) => void>();
  let news = Promise.withResolvers<void>();

  async function write(runId: string, event: EventBody): Promise<void> {
    const before = log.records(runId);
    const record = {
      event: create(RunEventSchema, { runId, sequence: before.length, event }),
      epoch: 1,
      instance: "i",
    };
    await log.append(record, before.at(-1)?.position ?? 0);
    stored.push(log.records(runId).at(-1)!);
    news.resolve();
    news = Promise.withResolvers();
  }

  async function* follow(from: number, signal: AbortSignal) {
    counts.followers += 1;
    if (failures.follows-- > 0) throw new Error("the consumer was refused");
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    for (let index = 0; !signal.aborted; ) {
      const next = stored[index];
      if (next === undefined) await Promise.race([news.promise, aborted]);
      else index += 1;
      if (next !== undefined && next.position >= from) yield next;
    }
  }

  const changes = createRunChanges({
    log: {
      read: async (...asked) => {
        counts.reads += 1;
        if (failures.reads-- > 0) throw new Error("no answer");
        return log.read(...asked);
      },
    },
    allRuns: {
      next: async () => (stored.at(-1)?.position ?? 0) + 1,
      follow,
      onDeleted(tell) {
        deletedListeners.add(tell);
        return { [Symbol.dispose]: () => void deletedListeners.delete(tell) };
      },
    },
    ...(bounds && { bounds }),
  });
  const queues = createMemoryQueues();
  return {
    write,
    counts,
    failures,
    delete: (deleted: DeletedRun) => {
      for (const tell of deletedListeners) tell(deleted);
    },
    /** Runs that were accepted for the principal and taken. */
    async begin(principal: string, ...runIds: string[]): Promise<void> {
      for (const runId of runIds) {
        const value = { sessionId: `s-${runId}`, agent: "a", principal, input: [] };
        await write(runId, { case: "accepted", value });
        await write(runId, { case: "claimed", value: {} });
      }
    },
    watch(request: MessageInitShape<typeof WatchRunsRequestSchema> = {}, caller: Caller = SELF, ends = signal) {
      const asked = create(WatchRunsRequestSchema, request);
      return watchRuns({ log, queues, changes }, asked, caller, ends);
    },
  };
}

const { signal } = new AbortController();
const ended = (outputText = ""): EventBody => ({ case: "ended", value: { state: RunState.COMPLETED, outputText } });

type Watch = ReturnType<ReturnType<typeof openStore>["watch"]>;

/** The next of what is told, in short. */
async function next(watch: Watch): Promise<string> {
  const { value: update } = await watch.next();
  if (update === undefined) return "end";
  if (update.case === "start") return `start ${update.value.nextSequence}`;
  if (update.case === "gap") return `gap ${update.value.firstSequence}-${update.value.lastSequence}`;
  if (update.case === "deleted") return `deleted ${update.value.runId}`;
  const { sequence, runId, run } = update.value;
  return `${sequence} ${runId} ${run ? enumWord(RunStateSchema, run.state) : "gone"}`;
}

test("SEC-5 a watch of runs that has ended leaves nothing, though no run changes", async () => {
  const { watch } = openStore();
  const watchOnce = async () => {
    const leaving = new AbortController();
    const watching = watch({}, SELF, leaving.signal);
    await watching.next();
    const more = watching.next();
    leaving.abort();
    await more.catch(() => {}); // ended by the test
  };
  expect(await keptBytes(watchOnce)).toBeLessThan(400);
});

test("ORCH-12 10,000 runs that stand cost a watcher nothing, and a change of one costs one read of its log at most", async () => {
  const { begin, write, watch, counts } = openStore();
  await begin("ada", ...Array.from({ length: 10_000 }, (_, index) => `r${index}`));
  const watchers = [watch(), watch(), watch()];
  for (const watcher of watchers) expect(await next(watcher)).toBe("start 20001");
  expect(counts).toEqual({ reads: 0, followers: 1 });
  for (let turn = 1; turn <= 50; turn += 1) {
    await write("r7", { case: "turnCommitted", value: { turn, items: [] } });
    for (const watcher of watchers) expect(await next(watcher)).toBe(`${20_000 + turn} r7 in_progress`);
  }
  await write("r7", ended());
  for (const watcher of watchers) expect(await next(watcher)).toBe("20051 r7 completed");
  expect(counts).toEqual({ reads: 1, followers: 1 });
});

test("SEC-2 a principal is told of its own runs only, also of those that are deleted", async () => {
  const store = openStore();
  const [ada, bob] = [store.watch({}, callerNamed("ada")), store.watch({}, callerNamed("bob"))];
  await Promise.all([ada.next(), bob.next()]);
  await store.begin("ada", "hers");
  await store.write("hers", ended());
  const told = [await next(ada), await next(ada), await next(ada)];
  expect(told).toEqual(["1 hers queued", "2 hers in_progress", "3 hers completed"]);
  store.delete({ runId: "hers", principal: "ada" });
  await store.begin("bob", "his");
  expect(await next(ada)).toBe("deleted hers");
  expect(await next(bob)).toBe("4 his queued");
});

test("BUS-1 who is slower than changes are dropped is told the gap, and goes on behind it", async () => {
  const { begin, write, watch } = openStore({ changes: 3, characters: 1_000 });
  const watcher = watch();
  expect(await next(watcher)).toBe("start 1");
  await begin("ada", "r");
  expect(await next(watcher)).toBe("1 r queued");
  for (let turn = 1; turn <= 4; turn += 1) await write("r", { case: "turnCommitted", value: { turn, items: [] } });
  await write("r", ended());
  await expect.poll(() => next(watch({ fromSequence: 1n }))).toBe("gap 1-4");
  expect(await next(watcher)).toBe("gap 2-4");
  expect(await next(watcher)).toBe("5 r in_progress");
});

test("ORCH-12 a change says what its run was asked last, in short, however long ago", async () => {
  const { write, watch } = openStore();
  const watcher = watch();
  expect(await next(watcher)).toBe("start 1");
  const said = (role: Role, text: string) =>
    ({ item: { case: "message", value: { role, content: textContent(text) } } }) as const;
  const input = [said(Role.USER, "First."), said(Role.ASSISTANT, "So?"), said(Role.USER, "y".repeat(10_000))];
  await write("r", { case: "accepted", value: { sessionId: "s", agent: "a", principal: "ada", input } });
  for (let turn = 1; turn <= 3; turn += 1) await write("r", { case: "turnCommitted", value: { turn, items: [] } });
  for (let change = 0; change < 4; change += 1) {
    const { value: update } = await watcher.next();
    const { inputText, items } = (update?.case === "event" && update.value.run) || fail("change");
    expect([inputText.slice(0, 9), inputText.length, items.length]).toEqual(["yyyyyyyyy", 300, 0]);
    expect(inputText).toMatch(/10000 characters/);
  }
});

function fail(name: string): never {
  throw new Error(`there is no ${name}`);
}

test("ORCH-12 what ended runs said takes a bounded room", async () => {
  const { begin, write, watch } = openStore({ changes: 1_000, characters: 1_000 });
  const watcher = watch();
  expect(await next(watcher)).toBe("start 1");
  for (const runId of ["one", "two", "three"]) {
    await begin("ada", runId);
    await write(runId, ended("x".repeat(600)));
  }
  await expect.poll(() => next(watch({ fromSequence: 1n }))).toBe("gap 1-6");
});

test("BUS-4 a log that cannot be read at once is read again, and no watcher is told of it", async () => {
  const { begin, write, watch, failures } = openStore();
  await begin("ada", "r");
  const watchers = [watch(), watch()];
  for (const watcher of watchers) expect(await next(watcher)).toBe("start 3");
  failures.reads = 2;
  await write("r", ended());
  for (const watcher of watchers) expect(await next(watcher)).toBe("3 r completed");
});

test("BUS-4 a log that stays unreadable is passed over, which watchers are told as a gap, and other runs go on", async () => {
  const { begin, write, watch, failures } = openStore();
  await begin("ada", "broken");
  const watchers = [watch(), watch()];
  for (const watcher of watchers) expect(await next(watcher)).toBe("start 3");
  failures.reads = 5;
  await write("broken", { case: "turnCommitted", value: { turn: 1, items: [] } });
  await begin("ada", "whole");
  for (const watcher of watchers) {
    expect(await next(watcher)).toBe("gap 3-3");
    expect(await next(watcher)).toBe("4 whole queued");
  }
  await write("broken", ended());
  for (const watcher of watchers) expect([await next(watcher), await next(watcher)]).toContain("6 broken completed");
});

test("BUS-4 the following of all runs begins again where it stood, and its watchers go on", async () => {
  const { begin, watch, failures, counts } = openStore();
  failures.follows = 2;
  const watcher = watch();
  expect(await next(watcher)).toBe("start 1");
  await begin("ada", "r");
  expect(await next(watcher)).toBe("1 r queued");
  expect(counts.followers).toBe(3);
});
