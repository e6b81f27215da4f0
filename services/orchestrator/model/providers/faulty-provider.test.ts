import type { ServerResponse } from "node:http";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { begin, frame, openProvider, stream } from "../../testing/fakes/chat-server.ts";
import { openRun } from "../../testing/loop-run.ts";
import { createModelSource } from "./model-source.ts";

type Answer = (response: ServerResponse) => void;

/** A run whose model is behind HTTP, with every wait of the retries told and none longer than it was asked for. */
async function openHttpRun(answers: Answer[], limits = {}) {
  const provider = await openProvider(answers);
  const modelOf = createModelSource({ openaiBaseUrl: provider.url, scripts: ".", modules: new Map() });
  const config = { provider: "openai-compatible", model: "tiny" };
  const model = modelOf({ ...config, $typeName: "toolbus.agent.v1.Model", contextWindow: 0 });
  const retries: { error: unknown; afterMs: number }[] = [];
  const context = { onRetry: (error: unknown, afterMs: number) => void retries.push({ error, afterMs }) };
  const run = await openRun({ turns: [], model, agent: { model: config }, limits, context });
  return { ...run, provider, retries };
}

const stallMs = 700;
const whole = stream([{ content: "whole" }]);
const status =
  (code: number, headers: Record<string, string> = {}, body = '{"error":{"message":"no"}}'): Answer =>
  (response) =>
    response.writeHead(code, { "content-type": "application/json", ...headers }).end(body);

const events = (response: ServerResponse, text: string) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(text);
};

describe("a provider that misbehaves", () => {
  test.each<[string, Answer, number?]>([
    ["answers 500", status(500, { "retry-after-ms": "1" })],
    ["answers 429 without a time", status(429)],
    ["answers 529 with no JSON", status(529, { "retry-after-ms": "1" }, "<html>overloaded</html>")],
    ["resets before it answers", (response) => void response.socket?.resetAndDestroy()],
    ["closes before it answers", (response) => void response.destroy()],
    [
      "resets in mid text",
      (response) => {
        begin(response, [{ content: "half" }]);
        setImmediate(() => response.socket?.resetAndDestroy());
      },
    ],
    ["says nothing", () => {}, stallMs],
    ["stalls in mid text", (response) => begin(response, [{ content: "half" }]), stallMs],
    [
      "stalls in mid arguments",
      (response) =>
        begin(response, [{ tool_calls: [{ index: 0, id: "c", function: { name: "double", arguments: '{"va' } }] }]),
      stallMs,
    ],
    ["sends garbage in its stream", (response) => events(response, "data: {not json\n\ndata: [DONE]\n\n")],
    ["sends JSON of another kind", (response) => events(response, 'data: {"surprise":true}\n\ndata: [DONE]\n\n')],
    [
      "ends its stream without an end",
      (response) => events(response, frame({ choices: [{ index: 0, delta: { content: "half" } }] })),
    ],
    ["ends its stream at once", (response) => events(response, "")],
    [
      "answers with a page",
      (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<h1>hello</h1>"),
    ],
    ["answers with nothing (204)", (response) => void response.writeHead(204).end()],
    [
      "answers with what cannot be unpacked",
      (response) =>
        void response
          .writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" })
          .end("no gzip"),
    ],
    [
      "tells an error inside of its stream",
      (response) => events(response, 'data: {"error":{"message":"out of memory","code":500}}\n\ndata: [DONE]\n\n'),
    ],
    ...["abort", "error", "insufficient_system_resource"].map((end): [string, Answer] => [
      `ends with "${end}"`,
      stream([{ content: "half" }], end),
    ]),
  ])(
    "LOOP-11 that %s is asked again, and nothing of the attempt is in the log",
    async (_, answer, modelStallMs = 60_000) => {
      const modelStallTimeout = durationFromMs(modelStallMs);
      const run = await openHttpRun([answer, whole], { modelStallTimeout, modelRetries: 2 });
      await run.work();
      expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "whole", turnCount: 1 });
      expect(run.retries).toHaveLength(1);
      expect(run.provider.asked).toHaveLength(2);
      expect(run.events().find(({ event }) => event.case === "turnCommitted")?.event.value).toMatchObject({
        attempt: 2,
      });
    },
  );

  test("LOOP-11 Retry-After is obeyed as seconds and as a date", async () => {
    const inTwoSeconds = new Date(Date.now() + 2_000).toUTCString();
    const run = await openHttpRun([
      status(429, { "retry-after": "0.3" }),
      status(503, { "retry-after": inTwoSeconds }),
      whole,
    ]);
    await run.work();
    const [first, second] = run.retries.map(({ afterMs }) => afterMs);
    expect(first).toBe(300);
    expect(second).toBeGreaterThan(0);
    expect(second).toBeLessThanOrEqual(2_000);
    const [one, two] = run.provider.asked;
    expect(two!.atMs - one!.atMs).toBeGreaterThanOrEqual(295);
  });

  test("LOOP-11 pauses without a word of the provider grow and vary", async () => {
    const run = await openHttpRun([status(500), status(500), status(500), whole]);
    await run.work();
    const pauses = run.retries.map(({ afterMs }) => afterMs);
    expect(pauses).toHaveLength(3);
    for (const [index, base] of [250, 500, 1_000].entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(base * 0.5);
      expect(pauses[index]).toBeLessThanOrEqual(base * 1.5);
    }
    expect(pauses.every((pause) => [250, 500, 1_000].includes(pause))).toBe(false);
  });

  test.each([
    ["400", status(400, {}, '{"error":{"message":"too many tokens"}}'), "too many tokens"],
    ["401", status(401, {}, '{"error":{"message":"wrong key"}}'), "wrong key"],
    ["404", status(404, {}, '{"error":{"message":"no such model"}}'), "no such model"],
  ])("LOOP-1 what a provider refuses for good (%s) fails the run with its words, at once", async (_, answer, words) => {
    const run = await openHttpRun([answer]);
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.FAILED,
      endReason: RunEndReason.MODEL_ERROR,
      error: words,
    });
    expect(run.provider.asked).toHaveLength(1);
  });

  const quota = '"code":"insufficient_quota"';
  test.each([
    [`{\n"error":{"message":"no credits",${quota}}}`, 1],
    ['{"error":"no credits"}', 2],
    ['{"error":true,"message":"no credits"}', 2],
    ['\uFEFF{"error":"no credits"}', 2],
  ])("LOOP-1 what a provider refuses with 200 and JSON, %s, fails the run with its words", async (body, asked) => {
    const answer = status(200, {}, body);
    const run = await openHttpRun(Array(10).fill(answer), { modelRetries: 1 });
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.FAILED, error: "no credits" });
    expect(run.provider.asked).toHaveLength(asked);
  });

  test("LOOP-1 a provider that says JSON of its stream is heard all the same, and as it speaks", async () => {
    const run = await openHttpRun([
      (response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.write(`\n${frame({ choices: [{ index: 0, delta: { content: "whole" } }] })}`);
        setTimeout(() => response.end(frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })), 50);
      },
    ]);
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "whole" });
  });

  test.each([
    ["model_length", RunEndReason.MAX_OUTPUT_TOKENS],
    ["SAFETY", RunEndReason.CONTENT_FILTER],
  ])("LOOP-1 an answer that ends with a word of the provider's own, %s, is incomplete", async (end, endReason) => {
    const run = await openHttpRun([stream([{ content: "half" }], end)]);
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.INCOMPLETE, endReason, outputText: "half" });
  });

  const last = frame({ choices: [{ index: 0, delta: { content: "whole" }, finish_reason: "stop" }] });
  test.each([
    ["has no empty line at its end", last.trimEnd()],
    ["is cut off behind its end", `${last}data: [DO`],
    ["is cut off in its counts", `${last.trimEnd()}\ndata: {"choices":[],"us`],
    ["counts without choices", `${last}data: {"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n`],
    ["counts with null for choices", `${last}data: {"choices":null,"usage":{"prompt_tokens":7}}\n\n`],
  ])("LOOP-11 an answer stands whose stream %s", async (_, text) => {
    const run = await openHttpRun([(response) => events(response, text)]);
    await run.work();
    expect(await run.view()).toMatchObject({ outputText: "whole" });
    expect(run.provider.asked).toHaveLength(1);
  });

  test("LOOP-1 LOOP-11 a provider that asks for longer than ten minutes is not waited for, and the run says so", async () => {
    const run = await openHttpRun([status(429, { "retry-after": "86400" })]);
    await run.work();
    const error = "no (the provider asks to wait 86400 s, and 600 s are the most)";
    expect(await run.view()).toMatchObject({
      state: RunState.FAILED,
      endReason: RunEndReason.RATE_LIMIT_EXCEEDED,
      error,
    });
    expect(run.retries).toEqual([]);
    expect(run.provider.asked).toHaveLength(1);
  });

  test("LOOP-1 LOOP-11 the run's deadline ends the patience with a provider", async () => {
    const run = await openHttpRun([status(429, { "retry-after": "600" })], { timeout: durationFromMs(300) });
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.DEADLINE });
  });

  test.each([
    ["text", { prompt_tokens: 7, completion_tokens: 3, total_tokens: "10" }, 7n],
    ["an object", { prompt_tokens: 7, completion_tokens: 3, total_tokens: {} }, 7n],
    ["text within", { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: "1" } }, 7n],
  ])("LOOP-11 a count of tokens that is %s is passed over, and the answer stands", async (_, usage, inputTokens) => {
    const answer: Answer = (response) => {
      begin(response, [{ content: "whole" }]);
      response.end(`${frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage })}data: [DONE]\n\n`);
    };
    const run = await openHttpRun([answer]);
    await run.work();
    expect(await run.view()).toMatchObject({ outputText: "whole", usage: { inputTokens, outputTokens: 3n } });
  });

  test.each([
    ["text", { prompt_tokens: "7000000", completion_tokens: "3", total_tokens: "7000003" }],
    ["null", { prompt_tokens: null, completion_tokens: null, total_tokens: null }],
    ["not there", {}],
    ["zero", { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ])("LOOP-12 LOOP-11 counts of tokens that are %s are estimated, so that a budget is reached", async (_, usage) => {
    const answer: Answer = (response) => {
      begin(response, [{ content: "whole".repeat(100) }]);
      response.end(`${frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage })}data: [DONE]\n\n`);
    };
    const run = await openHttpRun([answer]);
    await run.work();
    const { usage: spent } = await run.view();
    expect(spent?.inputTokens).toBeGreaterThan(0n);
    expect(spent?.inputTokens).toBeLessThan(1_000n);
    expect(spent?.outputTokens).toBe(125n);
  });

  test("LOOP-15 canceling reaches the model's socket, before its answer and in the middle of it", async () => {
    for (const begins of [false, true]) {
      const [asked, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const hang: Answer = (response) => {
        response.on("close", () => closed.resolve());
        if (begins) begin(response, [{ content: "half" }]);
        asked.resolve();
      };
      const run = await openHttpRun([hang]);
      const working = run.work().catch((error: Error) => error.message);
      await asked.promise;
      run.given.abort(new Error("canceled"));
      await closed.promise;
      expect(await working).toBe("canceled");
    }
  });

  test("LOOP-7 LOOP-11 calls that a model gets wrong are errors for it: arguments, names", async () => {
    const calls = [
      { index: 0, id: "x", function: { name: "double", arguments: '{"value":' } },
      { index: 1, id: "y", function: { name: "no such tool", arguments: "{}" } },
    ];
    const run = await openHttpRun([stream([{ tool_calls: calls }], "tool_calls"), whole]);
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "whole" });
    expect((await run.results()).map(({ result }) => result?.isError)).toEqual([true, true]);
  });
});
