import type { ServerResponse } from "node:http";
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { describe, expect, test } from "vitest";
import { AgentSchema, LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { ModelSettingsSchema } from "#gen/toolbus/run/v1/model_settings_pb.ts";
import { Role, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { createInSpan } from "#runtime/telemetry/in-span.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { claimRun } from "../../../log/claim.ts";
import { createJournal } from "../../../log/journal.ts";
import { runFromState } from "../../../log/state/view.ts";
import { limitsFrom } from "../../../loop/limits/limits.ts";
import { runLoop } from "../../../loop/loop.ts";
import { createModelRow } from "../../../loop/requests/models.ts";
import { begin, frame, openProvider, stream } from "../../../testing/fakes/chat-server.ts";
import { createFakeRouter } from "../../../testing/fakes/fake-router.ts";
import { createFakeToolMessages } from "../../../testing/fakes/fake-tool-messages.ts";
import { createMemoryRunLog } from "../../../testing/fakes/memory-log.ts";
import { emptyInbox } from "../../../testing/loop-run.ts";
import { createModelSource } from "../model-source.ts";

/** A run from its acceptance to its end, with a model behind HTTP. */
async function takeRun(
  url: string,
  limits = {},
  {
    openaiApiKey,
    modelSettings,
    options,
  }: {
    openaiApiKey?: string | undefined;
    modelSettings?: MessageInitShape<typeof ModelSettingsSchema>;
    options?: JsonObject;
  } = {
    openaiApiKey: "key-1",
  },
) {
  const log = createMemoryRunLog();
  const journal = createJournal(log, "r", systemClock);
  const input = [{ item: { case: "message" as const, value: { role: Role.USER, content: textContent("go") } } }];
  await journal.append(() => ({
    case: "accepted",
    value: { sessionId: "s", agent: "helper", input, ...(modelSettings && { options: { modelSettings } }) },
  }));
  const run = (await claimRun(journal, "process"))!;
  const modelOf = createModelSource({
    openaiBaseUrl: url,
    ...(openaiApiKey !== undefined && { openaiApiKey }),
    scripts: ".",
    modules: new Map(),
  });
  const model = {
    provider: "openai-compatible",
    model: "tiny",
    options: { temperature: 0.5, top_k_only_here: 4, ...options },
  };
  const agent = create(AgentSchema, { name: "helper", model });
  const retries: number[] = [];
  await runLoop(run, {
    agent,
    models: createModelRow({ language: modelOf(agent.model!), config: agent.model! }),
    limits: limitsFrom(undefined, create(LimitsSchema, limits)),
    history: [],
    inbox: emptyInbox,
    router: createFakeRouter([{ name: "double", answer: (args) => (args as { value: number }).value * 2 }]),
    clock: systemClock,
    publishDelta: () => {},
    setDeltas: () => {},
    inSpan: createInSpan(undefined),
    lendSlot: () => new DisposableStack(),
    maxTurnBytes: log.maxEventBytes("r"),
    checkpointMs: 60_000,
    toolMessages: createFakeToolMessages(),
    onNotShown: () => {},
    onRefused: () => {},
    onRetry: (_, afterMs) => retries.push(afterMs),
    onFailover: () => {},
    signal: new AbortController().signal,
    handover: new AbortController().signal,
  });
  const committed = log.events("r").flatMap(({ event }) => (event.case === "turnCommitted" ? [event.value] : []));
  return { run: runFromState(journal.state!), committed, retries };
}

test("PROD-2 OpenAI is not asked without a key: the run fails at once and says what to set", async () => {
  const { run, retries } = await takeRun("https://api.openai.com/v1", {}, { openaiApiKey: undefined });
  expect(run.state).toBe(RunState.FAILED);
  expect(run.error).toMatch(/set OPENAI_API_KEY.* in \.env/);
  expect(retries).toEqual([]);
});

describe("a model behind the chat completions API", () => {
  test("LOOP-11 is asked with tools, options and results, and its stream becomes turns", async () => {
    const call = (args: string) => ({ tool_calls: [{ index: 0, function: { arguments: args } }] });
    const provider = await openProvider([
      stream(
        [
          { role: "assistant", content: "Let me " },
          { content: "see." },
          { tool_calls: [{ index: 0, id: "call_x", type: "function", function: { name: "double", arguments: "" } }] },
          call('{"val'),
          call('ue":21}'),
        ],
        "tool_calls",
      ),
      stream([{ content: "42" }]),
    ]);
    const { run, committed } = await takeRun(provider.url);
    expect(run).toMatchObject({
      state: RunState.COMPLETED,
      outputText: "42",
      usage: { inputTokens: 14n, outputTokens: 6n },
    });
    expect(committed[0]).toMatchObject({ model: "tiny-2", finishReason: "tool-calls" });
    const [first, second] = provider.asked;
    expect(first?.headers).toMatchObject({ authorization: "Bearer key-1", "idempotency-key": "r-1-1" });
    expect(first?.body).toMatchObject({ model: "tiny", stream: true, temperature: 0.5, top_k_only_here: 4 });
    expect(first?.body.tools).toMatchObject([{ type: "function", function: { name: "double" } }]);
    expect(second?.body.messages).toMatchObject([
      { role: "user" },
      {
        role: "assistant",
        content: "Let me see.",
        tool_calls: [{ id: "call_x", function: { arguments: '{"value":21}' } }],
      },
      { role: "tool", tool_call_id: "call_x", content: "42" },
    ]);
  });

  test.each([false, true])("LOOP-18 is told the schema of a JSON answer, strict: %s", async (strict) => {
    const provider = await openProvider([stream([{ content: "{}" }])]);
    const schema = { type: "object", properties: { name: { type: "string" } } };
    const jsonOutput = { schemaJson: JSON.stringify(schema), name: "person", strict };
    const modelSettings = { jsonOutput, stopSequences: ["\n\n"] };
    await takeRun(provider.url, {}, { openaiApiKey: "key-1", modelSettings });
    expect(provider.asked[0]?.body).toMatchObject({
      response_format: { type: "json_schema", json_schema: { name: "person", schema, strict } },
      stop: ["\n\n"],
      top_k_only_here: 4,
    });
  });

  test.each([
    [{ jsonOutput: { strict: false } }, {}, false],
    [{ jsonOutput: {} }, {}, true],
    [{ jsonOutput: {} }, { strictJsonSchema: false }, false],
    [{ jsonOutput: { strict: true } }, { strictJsonSchema: false }, true],
  ])("LOOP-18 is as strict as the request %j, else as its options %j say", async ({ jsonOutput }, options, strict) => {
    const provider = await openProvider([stream([{ content: "{}" }])]);
    const modelSettings = { jsonOutput: { schemaJson: '{"type":"object"}', name: "it", ...jsonOutput } };
    await takeRun(provider.url, {}, { openaiApiKey: "key-1", modelSettings, options });
    expect(provider.asked[0]?.body).toMatchObject({ response_format: { json_schema: { strict } } });
  });

  test("LOOP-18 is asked for JSON without its schema where json_schema of its options is false", async () => {
    const provider = await openProvider([stream([{ content: "{}" }])]);
    const modelSettings = { jsonOutput: { schemaJson: '{"type":"object"}', name: "it", strict: true } };
    await takeRun(provider.url, {}, { openaiApiKey: "key-1", modelSettings, options: { json_schema: false } });
    expect(provider.asked[0]?.body).toMatchObject({ response_format: { type: "json_object" } });
    expect(provider.asked[0]?.body).not.toHaveProperty("json_schema");
  });

  test("LOOP-11 a 429 is tried again when the provider said", async () => {
    const busy = (response: ServerResponse) => {
      response.writeHead(429, { "retry-after": "0.2", "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "slow down" } }));
    };
    const provider = await openProvider([busy, stream([{ content: "fine" }])]);
    const { run, retries } = await takeRun(provider.url);
    expect(run.outputText).toBe("fine");
    expect(retries).toEqual([200]);
    expect(provider.asked[1]!.atMs - provider.asked[0]!.atMs).toBeGreaterThanOrEqual(195);
  });

  test("LOOP-11 a stream that stalls is cut, its connection closed, and the turn taken by another attempt", async () => {
    const closed = Promise.withResolvers<void>();
    const stall = (response: ServerResponse) => {
      begin(response, [{ content: "half a sen" }]);
      response.on("close", () => closed.resolve());
    };
    const provider = await openProvider([stall, stream([{ content: "whole" }])]);
    const { run, committed } = await takeRun(provider.url, { modelStallTimeout: durationFromMs(100) });
    await closed.promise;
    expect(run.outputText).toBe("whole");
    expect(committed).toMatchObject([{ turn: 1, attempt: 2 }]);
  });

  test.each([
    ["before its answer", () => {}],
    ["in the middle of it", (response: ServerResponse) => begin(response, [{ content: "wh" }])],
  ])("LOOP-12 a model may be silent for as long as modelStallTimeout says, %s", async (_, start) => {
    const ordinary = getGlobalDispatcher();
    setGlobalDispatcher(new Agent({ headersTimeout: 300, bodyTimeout: 300 })); // as Node's own of 300 s, in little
    try {
      const slow = (response: ServerResponse) => {
        start(response);
        const rest = response.headersSent ? "ole" : "whole";
        setTimeout(() => {
          if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
          const choice = { index: 0, delta: { content: rest }, finish_reason: "stop" };
          response.end(`${frame({ choices: [choice] })}data: [DONE]\n\n`);
        }, 2_500);
      };
      const provider = await openProvider([slow, stream([{ content: "asked again" }])]);
      const { run, retries } = await takeRun(provider.url, { modelStallTimeout: durationFromMs(20_000) });
      expect(run.outputText).toBe("whole");
      expect(retries).toEqual([]);
    } finally {
      setGlobalDispatcher(ordinary);
    }
  });

  test("LOOP-11 a stream that is reset in the middle is tried again", async () => {
    const reset = (response: ServerResponse) => {
      begin(response, [{ content: "half" }]);
      setImmediate(() => response.destroy());
    };
    const provider = await openProvider([reset, stream([{ content: "whole" }])]);
    expect((await takeRun(provider.url)).run.outputText).toBe("whole");
  });

  test("LOOP-12 after model_retries the run fails with the provider's words; what cannot pass is not tried again", async () => {
    const refuse = (status: number) => (response: ServerResponse) => {
      response.writeHead(status, { "content-type": "application/json", "retry-after-ms": "1" });
      response.end(JSON.stringify({ error: { message: `no: ${status}` } }));
    };
    const failing = await openProvider([refuse(500), refuse(503), refuse(500)]);
    const { run } = await takeRun(failing.url, { modelRetries: 1 });
    expect(run).toMatchObject({ state: RunState.FAILED, endReason: RunEndReason.MODEL_ERROR, error: "no: 503" });
    const refusing = await openProvider([refuse(401)]);
    expect((await takeRun(refusing.url)).run).toMatchObject({ endReason: RunEndReason.MODEL_ERROR, error: "no: 401" });
    expect(refusing.asked).toHaveLength(1);
  });

  test("SEC-7 the words of a server that repeats the key come without it", async () => {
    const told = '{"error":{"message":"what is key-1?","type":"invalid_request_error"}}';
    for (const repeat of [
      (response: ServerResponse) => response.writeHead(401).end(told),
      (response: ServerResponse) => response.writeHead(200, { "content-type": "application/json" }).end(told),
      (response: ServerResponse) =>
        response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${told}\n\n`),
    ]) {
      const repeating = await openProvider([repeat]);
      expect((await takeRun(repeating.url)).run).toMatchObject({ error: "what is [secret OPENAI_API_KEY]?" });
    }
  });
});
