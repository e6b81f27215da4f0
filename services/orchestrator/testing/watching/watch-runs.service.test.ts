import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import type { WatchRunsRequestSchema, WatchRunsResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { auditOf } from "../../../../test/harness/bus.ts";
import { asking, openScriptedWorld, type ScriptedWorld } from "../scripted-world.ts";

let world: ScriptedWorld;
beforeAll(async () => {
  world = await openScriptedWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

type Request = MessageInitShape<typeof WatchRunsRequestSchema>;

/** Follows runs until it is left; `said` is what was told, a line each. */
function following(request: Request = {}) {
  const leaving = new AbortController();
  const updates: WatchRunsResponse["update"][] = [];
  const watch = async () => {
    for await (const { update } of world.runs.watchRuns(request, { signal: leaving.signal })) updates.push(update);
  };
  let fault: unknown;
  const ended = watch().catch((error: unknown) => {
    fault = error;
  });
  return {
    updates,
    ended,
    fault: () => fault,
    begun: () => until(() => updates.length > 0, { what: "the watch to begin" }),
    statesOf: (runId: string) =>
      updates.flatMap(({ case: kind, value }) =>
        kind === "event" && value.runId === runId
          ? [value.run ? RunStateSchema.value[value.run.state]?.localName : "gone"]
          : [],
      ),
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await ended;
    },
  };
}

const places = (updates: readonly WatchRunsResponse["update"][]) =>
  updates.flatMap((update) => (update.case === "event" ? [update.value.sequence] : []));

describe("BUS-1 ORCH-12 a watch of all runs", () => {
  test("ORCH-12 tells each run as it is accepted, taken, answered and ended, from now on", async () => {
    const earlier = await world.start({ agent: "echo" }, "before");
    await world.becomes(earlier, RunState.COMPLETED);
    await using watch = following();
    await watch.begun();
    expect(watch.updates[0]?.case).toBe("start");
    const run = await world.start({ agent: "echo" }, "hello");
    await until(() => watch.statesOf(run.id).includes("COMPLETED"), { what: "the run's end to be told" });
    expect(watch.statesOf(run.id)).toEqual(["QUEUED", "IN_PROGRESS", "IN_PROGRESS", "COMPLETED"]);
    const last = watch.updates.findLast(({ case: kind }) => kind === "event")?.value;
    const { run: standing } = await world.runs.getRun({ runId: run.id });
    expect(last).toMatchObject({ runId: run.id, run: { ...standing!, items: [] } });
    expect(watch.statesOf(earlier.id)).toEqual([]);
    const sequences = places(watch.updates);
    expect(sequences).toEqual(sequences.toSorted((one, other) => Number(one - other)));
  });

  test("BUS-1 goes on from any place with what came since, once, and refuses one that was not reached", async () => {
    await using watch = following();
    await watch.begun();
    const run = await world.start({ agent: "echo" }, "again");
    await until(() => watch.statesOf(run.id).includes("COMPLETED"));
    const all = places(watch.updates);
    const middle = all[1] ?? 0n;
    await using later = following({ fromSequence: middle + 1n });
    await until(() => later.statesOf(run.id).includes("COMPLETED"));
    expect(all.slice(2)).toEqual(expect.arrayContaining(places(later.updates)));
    expect(later.updates.map(({ case: kind }) => kind)).not.toContain("gap");
    await using ahead = following({ fromSequence: 1_000_000n });
    await ahead.ended;
    expect(ahead.fault()).toMatchObject({ code: 11, message: expect.stringContaining("has no event 1000000") });
  });

  test("BUS-1 an instance that does not hold what was asked for tells a gap, and goes on", async () => {
    const begins = async () => {
      await using early = following({ fromSequence: 1n });
      await early.begun();
      return early.updates[0];
    };
    const isForgotten = async () => (await begins())?.case === "gap"; // a moment after the last one who watched has left
    await until(isForgotten, { what: "what was held for others to be forgotten" });
    await using watch = following({ fromSequence: 1n });
    await watch.begun();
    expect(watch.updates[0]).toMatchObject({ case: "gap", value: { firstSequence: 1n } });
    const run = await world.start({ agent: "echo" }, "go on");
    await until(() => watch.statesOf(run.id).includes("COMPLETED"));
  });

  test("ORCH-12 passes the filters of a list, and says which run no longer passes them", async () => {
    await using waiting = following({ states: [RunState.REQUIRES_ACTION] });
    await using asked = following({ tool: "ask" });
    await using ofAgent = following({ agent: "echo" });
    await Promise.all([waiting, asked, ofAgent].map((watch) => watch.begun()));
    const run = await world.start({ agent: "asker" }, "who?", { options: asking });
    await until(() => waiting.statesOf(run.id).length > 0, { what: "the run to wait" });
    await world.runs.cancelRun({ runId: run.id });
    await until(() => waiting.statesOf(run.id).length > 1, { what: "the run to be gone" });
    const other = await world.start({ agent: "echo" }, "other");
    await until(() => ofAgent.statesOf(other.id).includes("COMPLETED"));
    expect(waiting.statesOf(run.id).slice(0, 2)).toEqual(["REQUIRES_ACTION", "gone"]);
    expect(asked.statesOf(run.id)).toEqual(expect.arrayContaining(["REQUIRES_ACTION", "CANCELED"]));
    expect(ofAgent.statesOf(run.id)).toEqual([]);
    expect(asked.statesOf(other.id)).toEqual([]);
  });

  test("ORCH-12 says that a run was deleted, and the trail says by whom", async () => {
    const run = await world.start({ agent: "echo" }, "short");
    await world.becomes(run, RunState.COMPLETED);
    await using watch = following();
    await watch.begun();
    await world.runs.deleteRun({ runId: run.id });
    await until(() => watch.updates.length > 1);
    expect(watch.updates[1]).toMatchObject({ case: "deleted", value: { runId: run.id } });
    const [audited] = await until(async () => {
      const events = await auditOf(world.bus, AuditKind.DELETED);
      return events.length > 0 && events;
    });
    const { id: runId, sessionId, agent } = run;
    expect(audited).toMatchObject({ runId, sessionId, agent, principal: "local" });
  });
});
