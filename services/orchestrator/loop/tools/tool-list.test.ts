import type { Duration } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { msFromDuration } from "#runtime/time/duration.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { createFakeRouter } from "../../testing/fakes/fake-router.ts";
import { double, openRun, tools } from "../../testing/loop-run.ts";
import type { ToolRouter } from "./tool-router.ts";

/** A router that names its list at the end of each call, as the last of these names, and counts how often it is asked for it. */
function createNamingRouter(revisions: string[]) {
  const router = createFakeRouter(tools);
  let calls = 0;
  const counted = { lists: 0 };
  const nameNow = () => revisions[Math.min(calls, revisions.length - 1)] ?? "";
  const naming: ToolRouter = {
    ...router,
    async listTools(request, options) {
      counted.lists += 1;
      return { ...(await router.listTools(request, options)), toolsRevision: nameNow() };
    },
    async *callTool(request, options) {
      calls += 1;
      for await (const told of router.callTool(request, options))
        yield told.event.case === "result"
          ? { ...told, event: { ...told.event, value: { ...told.event.value, toolsRevision: nameNow() } } }
          : told;
    },
  };
  return { router: naming, counted };
}

const turns = [{ calls: [double(1)] }, { calls: [double(2)] }, { calls: [double(3)] }, { text: "done" }];

test("LOOP-1 the tools are listed once as long as each call tells that they are the same", async () => {
  const { router, counted } = createNamingRouter(["a"]);
  const run = await openRun({ turns, context: { router } });
  expect(await run.work()).toBe("ended");
  expect(counted.lists).toBe(1);
});

test("LOOP-1 the tools are listed again before the turn that follows their change", async () => {
  const { router, counted } = createNamingRouter(["a", "a", "b"]);
  const run = await openRun({ turns, context: { router } });
  expect(await run.work()).toBe("ended");
  expect(counted.lists).toBe(2);
});

test("LOOP-1 a router that names no list is asked for it at each turn", async () => {
  const { router, counted } = createNamingRouter([""]);
  const run = await openRun({ turns, context: { router } });
  expect(await run.work()).toBe("ended");
  expect(counted.lists).toBe(turns.length);
});

test("LOOP-1 sources that go on starting delay a run for a minute in all, not each of its turns", async () => {
  const { router } = createNamingRouter([""]);
  const clock = createManualClock();
  const waits: number[] = [];
  const starting: ToolRouter = {
    ...router,
    async listTools(request, options) {
      const waitMs = msFromDuration(request.sourceWait as Duration) ?? 0;
      waits.push(waitMs);
      await clock.advance(Math.min(waitMs, 40_000));
      return router.listTools(request, options);
    },
  };
  const run = await openRun({ turns, context: { router: starting, clock } });
  expect(await run.work()).toBe("ended");
  expect(waits).toEqual([60_000, 20_000, 0, 0]);
});
