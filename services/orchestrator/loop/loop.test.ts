import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { RunEndReason, RunMode, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { ToolOutputSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ListToolsResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import { until } from "#runtime/time/until.ts";
import { Superseded } from "../log/claim.ts";
import { submitOutputs } from "../runs/answer/answers.ts";
import { createFakeModel } from "../testing/fakes/fake-model.ts";
import type { FakeTool } from "../testing/fakes/fake-router.ts";
import { double, openRun, tools } from "../testing/loop-run.ts";

describe("the loop", () => {
  test("LOOP-1 turns from the model over its calls to the final answer", async () => {
    const run = await openRun({ turns: [{ calls: [double(4)] }, { text: "It is {{result.0}}." }] });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({
      state: RunState.COMPLETED,
      endReason: RunEndReason.FINAL_ANSWER,
      outputText: "It is 8.",
    });
    expect(run.asked[0]?.prompt[0]).toEqual({ role: "system", content: "Help." });
    expect(run.asked[0]?.headers).toEqual({ "idempotency-key": "r-1-1" });
  });

  test("ORCH-7 the model reads what sources say of the use of tools that it may call, under their names", async () => {
    const run = await openRun({ turns: [{ text: "done" }] });
    const tool = { modelName: "files__read", reference: "@files/read", callable: true, available: true };
    const blocked = { ...tool, modelName: "disks__wipe", reference: "@disks/wipe", callable: false };
    const sources = [
      { source: "files", available: true, instructions: "Read before you write." },
      { source: "disks", available: true, instructions: "Wipe first." },
      { source: "quiet", available: true },
    ];
    run.router.listTools = async () =>
      create(ListToolsResponseSchema, { tools: [tool, blocked], sources, agent: "helper", contextRevision: 1 });
    await run.work();
    const content = "Help.\n\n[What the tool source files says of the use of its tools]\nRead before you write.";
    expect(run.asked[0]?.prompt[0]).toEqual({ role: "system", content });
  });

  test("LOOP-4 calls run in parallel within their limit, and results go back in the order of the calls", async () => {
    const opened = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    const gate: FakeTool = {
      name: "gate",
      answer: async (args) => {
        const { index } = args as { index: number };
        await opened[index]!.promise;
        return index;
      },
    };
    const calls = opened.map((_, index) => ({ name: "gate", arguments: { index } }));
    const run = await openRun({
      turns: [{ calls }, { text: "done" }],
      tools: [gate],
      limits: { maxParallelCalls: 2 },
    });
    const working = run.work();
    for (const index of [1, 0, 3, 2]) {
      await until(() => run.router.requests.length > index, { what: `call ${index} to begin` });
      opened[index]!.resolve();
    }
    await working;
    expect(run.router.mostRunning).toBe(2);
    expect((await run.results()).map(({ result }) => result?.outputJson)).toEqual(["0", "1", "2", "3"]);
    const finished = run
      .events()
      .flatMap(({ event }) => (event.case === "callFinished" ? [event.value.result?.outputJson] : []));
    expect(finished).toEqual(["1", "0", "3", "2"]);
  });

  test("LOOP-4 eight calls run at once unless the limits say otherwise", async () => {
    const [all, open] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let begun = 0;
    const gate: FakeTool = {
      name: "gate",
      answer: async () => {
        begun += 1;
        if (begun === 8) all.resolve();
        await open.promise;
        return begun;
      },
    };
    const calls = Array.from({ length: 12 }, () => ({ name: "gate" }));
    const run = await openRun({ turns: [{ calls }, { text: "done" }], tools: [gate] });
    const working = run.work();
    await all.promise;
    open.resolve();
    await working;
    expect(run.router.mostRunning).toBe(8);
    expect(begun).toBe(12);
  });

  test("LOOP-4 without parallel_tool_calls they run one after the other", async () => {
    const calls = [double(1), double(2), double(3)];
    const run = await openRun({ turns: [{ calls }, { text: "done" }], options: { parallelToolCalls: false } });
    await run.work();
    expect(run.router.mostRunning).toBe(1);
  });

  test("LOOP-5 a mixed turn runs its own calls, parks for the rest, and goes on when the outputs are there", async () => {
    const options = { functionTools: [{ name: "ask" }, { name: "tell" }] };
    const calls = [{ name: "ask", id: "q1" }, double(5), { name: "tell", id: "q2" }];
    const run = await openRun({
      turns: [{ text: "A moment.", calls }, { text: "{{result.ask}} {{result.double}}" }],
      options,
    });
    expect(await run.work()).toBe("parked");
    const parked = await run.view();
    expect(parked).toMatchObject({ state: RunState.REQUIRES_ACTION });
    expect(parked.requiredCalls.map(({ callId }) => callId)).toEqual(["q1", "q2"]);
    expect(run.router.executed).toEqual(["double"]);

    const { answers } = run;
    const output = (callId: string, answer = "yes") =>
      create(ToolOutputSchema, { callId, outcome: { case: "resultJson", value: `"${answer} ${callId}"` } });
    await submitOutputs(answers, "r", [output("q2")], { caller: SELF });
    await expect(submitOutputs(answers, "r", [output("q1"), output("q2", "no")], { caller: SELF })).rejects.toThrow(
      "call q2 has its answer already",
    );
    await expect(submitOutputs(answers, "r", [output("q9")], { caller: SELF })).rejects.toThrow("call q9 is unknown");
    await expect(submitOutputs(answers, "r", [output("call_1_2")], { caller: SELF })).rejects.toThrow(
      "call_1_2 is not the client's",
    );
    await submitOutputs(answers, "r", [output("q1")], { caller: SELF });
    expect(await run.work("another process")).toBe("ended");
    expect(await run.view()).toMatchObject({ outputText: "yes q1 10" });
    expect((await run.results()).map(({ callId }) => callId)).toEqual(["q1", "call_1_2", "q2"]);
  });

  test("LOOP-6 a single turn returns the calls and executes nothing", async () => {
    const run = await openRun({ turns: [{ calls: [double(1)] }], options: { mode: RunMode.SINGLE_TURN } });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.COMPLETED,
      endReason: RunEndReason.SINGLE_TURN,
      turnCount: 1,
    });
    expect(run.router.requests).toEqual([]);
  });

  test("LOOP-6 a single turn that was cut off in a call is incomplete, as its client would execute the call", async () => {
    const cut = { id: "cut", name: "double", input: "" };
    const model = createFakeModel("m", () => ({ calls: [cut], finishReason: "length" }));
    const run = await openRun({ turns: [], model, options: { mode: RunMode.SINGLE_TURN } });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_OUTPUT_TOKENS,
      turnCount: 1,
    });
  });

  test("LOOP-7 what fails is data: a tool's error, arguments that are not JSON, an id that comes twice", async () => {
    const calls = [
      { name: "fail" },
      { name: "double", argumentsText: '{"value":' },
      double(1, "same"),
      double(2, "same"),
    ];
    const run = await openRun({ turns: [{ calls }, { text: "I see {{result.0.error}}" }] });
    await run.work();
    const results = await run.results();
    expect(results.map(({ result }) => result?.isError)).toEqual([true, true, false, true]);
    expect(new Set(results.map(({ callId }) => callId)).size).toBe(4);
    expect(run.router.executed).toEqual(["fail", "double"]);
    expect(await run.view()).toMatchObject({ outputText: "I see Error: broken" });
  });

  test("LOOP-7 a result is kept whole up to what the log takes; a larger one is an error that names the sizes", async () => {
    const large: FakeTool = { name: "large", answer: (args) => "\u00fc".repeat((args as { count: number }).count) };
    const calls = [256 * 1_024 - 1, 600 * 1_024].map((count) => ({ name: "large", arguments: { count } }));
    const run = await openRun({ turns: [{ calls }, { text: "done" }], tools: [large] });
    await run.work();
    const [whole, tooLarge] = (await run.results()).map(({ result }) => result);
    expect(Buffer.byteLength(whole?.outputJson ?? "")).toBe(512 * 1_024);
    expect(whole?.isError).toBe(false);
    expect(tooLarge?.isError).toBe(true);
    expect(tooLarge?.outputJson).toMatch(/the call's result takes 12\d{5} bytes, over the limit of 1048576/);
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED });
  });

  test("a turn that no log takes fails the run with the sizes, and the model is asked once", async () => {
    const run = await openRun({ turns: [{ text: "x".repeat(1_100_000) }] });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({
      state: RunState.FAILED,
      endReason: RunEndReason.TURN_TOO_LARGE,
      error: expect.stringMatching(/the model's turn takes at least 11\d{5} bytes, over the limit of 1048576/),
    });
    expect(run.asked).toHaveLength(1);
  });

  test("the answer to a call is read to its end, which closes its stream", async () => {
    const run = await openRun({ turns: [{ calls: [double(1)] }, { text: "done" }] });
    await run.work();
    expect(run.router.readToEnd).toEqual(["r_call_1_1"]);
  });

  test("LOOP-12 limits of weeks are kept: a model is waited for and no deadline has passed", async () => {
    const limits = {
      modelStallTimeout: durationFromMs(2 ** 32 - 1),
      timeout: durationFromMs(2 ** 32 - 1),
      modelRetries: 0,
    };
    const run = await openRun({ turns: [{ text: "in time", delayMs: 20 }], limits });
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "in time" });
  });

  test("a run whose log was removed under way is given up instead of being written for ever", async () => {
    const purge: FakeTool = { name: "purge", answer: () => run.log.purge("r") };
    const run = await openRun({ turns: [{ calls: [{ name: "purge" }] }, { text: "never" }], tools: [purge] });
    await expect(run.work()).rejects.toMatchObject({ code: "data_loss", reason: "RECORD_LOST" });
  });

  test("a model that counts its ids from the start in each turn is understood", async () => {
    const run = await openRun({ turns: [{ calls: [double(1, "0")] }, { calls: [double(2, "0")] }, { text: "done" }] });
    await run.work();
    expect((await run.results()).map(({ callId, result }) => [callId, result?.outputJson])).toEqual([
      ["0", "2"],
      ["0_2", "4"],
    ]);
  });

  test("LOOP-10 deltas are numbered from 0 within an attempt and make up the text", async () => {
    const run = await openRun({ turns: [{ text: "one two three four" }] });
    await run.work();
    expect(run.deltas.map(({ index: n }) => n)).toEqual(run.deltas.map((_, index) => index));
    expect(run.deltas.map(({ delta }) => (delta.case === "text" ? delta.value : "")).join("")).toBe(
      "one two three four",
    );
  });

  test("LOOP-10 the arguments of a call stream as the model writes them", async () => {
    const run = await openRun({ turns: [{ calls: [double(12_345_678, "d")] }, { text: "done" }] });
    await run.work();
    const pieces = run.deltas.flatMap(({ delta }) => (delta.case === "arguments" ? [delta.value] : []));
    expect(new Set(pieces.map(({ callId, name }) => `${callId} ${name}`))).toEqual(new Set(["d double"]));
    expect(JSON.parse(pieces.map(({ text }) => text).join(""))).toEqual({ value: 12_345_678 });
  });

  test("LOOP-13 after a takeover the calls without a result are dispatched again under their ids, recovering", async () => {
    const hang = Promise.withResolvers<string>();
    const slow: FakeTool = { name: "slow", answer: () => hang.promise };
    const run = await openRun({
      turns: [{ calls: [{ name: "slow" }, double(1)] }, { text: "{{result.slow}}" }],
      tools: [...tools, slow],
    });
    const frozen = run.work("frozen").catch((error: unknown) => error);
    await until(() => run.events().some(({ event }) => event.case === "callFinished"), {
      what: "the quick call's result",
    });
    const second = run.work("second");
    await until(() => run.router.requests.length === 3, { what: "the slow call to be dispatched again" });
    hang.resolve("at last");
    expect(await second).toBe("ended");
    expect(await frozen).toBeInstanceOf(Superseded);
    const [first, , again] = run.router.requests;
    expect(first).toMatchObject({ callId: "r_call_1_1", recovering: false });
    expect(again).toMatchObject({ callId: "r_call_1_1", recovering: true });
    expect(run.router.executed).toEqual(["slow", "double"]);
    expect(await run.view()).toMatchObject({ outputText: "at last" });
    expect(run.events().filter(({ event }) => event.case === "ended")).toHaveLength(1);
  });

  test("LOOP-13 on a handover the answer in the making is dropped and nothing is written", async () => {
    const run = await openRun({ turns: [{ text: "slowly", delayMs: 60_000 }] });
    const working = run.work();
    await until(() => run.asked.length === 1, { what: "the model to be asked" });
    run.handover.abort(new Error("stop"));
    expect(await working).toBe("handed_over");
    expect(run.asked[0]?.abortSignal?.aborted).toBe(true);
    expect(run.events().map(({ event }) => event.case)).toEqual(["accepted", "claimed"]);
  });
});
