import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { until } from "#runtime/time/until.ts";
import { begin, frame, openProvider } from "../fakes/chat-server.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { openScriptedWorld, type ScriptedWorld } from "../scripted-world.ts";
import { openWorld, userItem } from "../test-orchestrator.ts";

let world: ScriptedWorld;
beforeAll(async () => {
  world = await openScriptedWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

describe("watching", () => {
  test("LOOP-10 starts at any sequence, shows each event once, and ends after the terminal one", async () => {
    const run = await world.start({ agent: "doubler" }, "x");
    const all = await world.eventsOf(run);
    expect(all.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4, 5]);
    expect((await world.eventsOf(run, 3)).map(({ sequence }) => sequence)).toEqual([3, 4, 5]);
    expect(await world.eventsOf(run, 6)).toEqual([]);
  });

  test("LOOP-10 who joins in mid-turn gets the text so far, and everybody ends up with the text that is stored", async () => {
    const isJoined = Promise.withResolvers<void>();
    const provider = await openProvider([
      async (response) => {
        begin(response, [{ content: "once upon a time" }]);
        await isJoined.promise;
        const rest = { choices: [{ index: 0, delta: { content: " there was a run" }, finish_reason: "stop" }] };
        response.end(frame(rest));
      },
    ]);
    await using telling = await openWorld({ router: createFakeRouter([]), provider: "openai-compatible" });
    await telling.openOrchestrator("one", { OPENAI_BASE_URL: provider.url });
    const { run } = await telling.runs.createRun({ agent: "teller", input: [userItem("x")] });
    const texts = ["", "", "", ""];
    const watch = async (number: number) => {
      for await (const { update } of telling.runs.watchRun({ runId: run!.id, includeDeltas: true })) {
        if (update.case === "replaced") texts[number] = update.value.text;
        if (update.case === "delta" && update.value.delta.case === "text") texts[number] += update.value.delta.value;
      }
    };
    const first = watch(0);
    await until(() => texts[0] === "once upon a time");
    const others = [1, 2, 3].map(watch);
    await until(() => texts.every((text) => text === texts[0]));
    isJoined.resolve();
    await Promise.all([first, ...others]);
    expect(new Set(texts)).toEqual(new Set(["once upon a time there was a run"]));
  });
});

describe("listing", () => {
  test("gives runs latest first, by session, by status, in pages", async () => {
    const runs = [];
    for (const text of ["1", "2", "3"]) {
      const run = await world.start({ sessionId: "echo-list" }, text);
      await world.eventsOf(run);
      runs.push(run.id);
    }
    const first = await world.runs.listRuns({ sessionId: "echo-list", pageSize: 2 });
    expect(first.runs.map(({ id }) => id)).toEqual([runs[2], runs[1]]);
    const second = await world.runs.listRuns({ sessionId: "echo-list", pageSize: 2, pageToken: first.nextPageToken });
    expect(second.runs.map(({ id }) => id)).toEqual([runs[0]]);
    expect((await world.runs.listRuns({ sessionId: "echo-list", states: [RunState.FAILED] })).runs).toEqual([]);
    const all = (await world.runs.listRuns({})).runs.map(({ id }) => id);
    expect(all.indexOf(runs[2]!)).toBeLessThan(all.indexOf(runs[0]!));
    const inPages: string[] = [];
    for (let pageToken: string | undefined; pageToken !== ""; ) {
      const page = await world.runs.listRuns({ pageSize: 2, ...(pageToken !== undefined && { pageToken }) });
      inPages.push(...page.runs.map(({ id }) => id));
      pageToken = page.nextPageToken;
    }
    expect(inPages).toEqual(all);
    const wrong = world.runs.listRuns({ pageToken: runs[0]! });
    await expect(wrong).rejects.toMatchObject({ code: Code.InvalidArgument });
  });
});
