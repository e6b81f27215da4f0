import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  LanguageModelV2,
  LanguageModelV2CallOptions,
  LanguageModelV2StreamPart,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
} from "@ai-sdk/provider";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ModelSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { readConfig } from "../../config.ts";
import { openProvider, stream } from "../../testing/fakes/chat-server.ts";
import { double, openRun } from "../../testing/loop-run.ts";
import { createModelSource } from "./model-source.ts";
import { currentModelFrom } from "./openai-compatible/older-models.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-models-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const call = { type: "tool-call" as const, toolCallId: "c1", toolName: "double", input: '{"value":21}' };
const said = [
  { type: "stream-start" as const, warnings: [] },
  { type: "reasoning-start" as const, id: "r" },
  { type: "reasoning-delta" as const, id: "r", delta: "hm" },
  { type: "reasoning-end" as const, id: "r", providerMetadata: { old: { signature: "s" } } },
  { type: "text-start" as const, id: "t" },
  { type: "text-delta" as const, id: "t", delta: "I see" },
  { type: "text-end" as const, id: "t" },
];

/** Faithful to the types of V2: a first answer with a call, then a last one. */
function createV2Model(asked: LanguageModelV2CallOptions[]): LanguageModelV2 {
  return {
    specificationVersion: "v2",
    provider: "old",
    modelId: "v2",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("not here")),
    async doStream(options) {
      asked.push(options);
      const finishReason = asked.length === 1 ? ("tool-calls" as const) : ("stop" as const);
      const usage = { inputTokens: 7, outputTokens: 3, totalTokens: 10, cachedInputTokens: 2 };
      const parts: LanguageModelV2StreamPart[] = [...said, ...(asked.length === 1 ? [call] : [])];
      return { stream: ReadableStream.from([...parts, { type: "finish" as const, finishReason, usage }]) };
    },
  };
}

function createV3Model(asked: LanguageModelV3CallOptions[]): LanguageModelV3 {
  return {
    specificationVersion: "v3",
    provider: "newer",
    modelId: "v3",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("not here")),
    async doStream(options) {
      asked.push(options);
      const unified = asked.length === 1 ? ("tool-calls" as const) : ("stop" as const);
      const usage = {
        inputTokens: { total: 7, noCache: 5, cacheRead: 2, cacheWrite: undefined },
        outputTokens: { total: 3, text: 3, reasoning: undefined },
      };
      const parts: LanguageModelV3StreamPart[] = [...said, ...(asked.length === 1 ? [call] : [])];
      return {
        stream: ReadableStream.from([
          ...parts,
          { type: "finish" as const, finishReason: { unified, raw: unified }, usage },
        ]),
      };
    },
  };
}

describe("models of older packages", () => {
  test.each(["v2", "v3"])(
    "LOOP-11 a model of specification %s runs the loop, thoughts and usage included",
    async (version) => {
      const asked: (LanguageModelV2CallOptions | LanguageModelV3CallOptions)[] = [];
      const older =
        version === "v2"
          ? createV2Model(asked as LanguageModelV2CallOptions[])
          : createV3Model(asked as LanguageModelV3CallOptions[]);
      const run = await openRun({ turns: [], model: currentModelFrom(older) });
      await run.work();
      expect(await run.view()).toMatchObject({ endReason: RunEndReason.FINAL_ANSWER, outputText: "I see" });
      expect((await run.view()).usage).toMatchObject({ inputTokens: 14n, outputTokens: 6n });
      expect((await run.results()).map(({ result }) => result?.outputJson)).toEqual(["42"]);
      expect(asked[1]?.prompt.at(-2)?.content).toMatchObject([
        { type: "reasoning", text: "hm", providerOptions: { old: { signature: "s" } } },
        { type: "text", text: "I see" },
        { type: "tool-call", toolCallId: "c1", input: { value: 21 } },
      ]);
      expect(asked[1]?.prompt.at(-1)?.content).toMatchObject([{ output: { type: "json", value: 42 } }]);
    },
  );

  test("LOOP-11 a version that nobody knows is refused by its name", () => {
    const future = { specificationVersion: "v9" } as unknown as LanguageModelV3;
    expect(() => currentModelFrom(future)).toThrow("a model of version v9 is not understood");
  });
});

const modelOf = (provider: string, modules: Record<string, string> = {}) =>
  createModelSource({ openaiBaseUrl: "http://127.0.0.1:1", scripts: ".", modules: new Map(Object.entries(modules)) })(
    create(ModelSchema, { provider, model: "tiny" }),
  );

describe("packages of models", () => {
  test("LOOP-11 plug in by configuration: a module of the operator's makes a package's provider", async () => {
    const provider = await openProvider([stream([{ content: "from a package" }])]);
    const file = join(directory, "house.ts");
    const settings = JSON.stringify({ name: "house", baseURL: provider.url, apiKey: "k" });
    const package_ = import.meta.resolve("@ai-sdk/openai-compatible");
    await writeFile(
      file,
      `import { createOpenAICompatible } from ${JSON.stringify(package_)};\nexport const house = createOpenAICompatible(${settings});\n`,
    );
    const run = await openRun({ turns: [], model: modelOf("house", { house: `${file}#house` }) });
    await run.work();
    expect(await run.view()).toMatchObject({ outputText: "from a package" });
    expect(provider.asked[0]?.headers).toMatchObject({ authorization: "Bearer k" });
  });

  test("LOOP-11 a package of the AI SDK is found by its name alone", async () => {
    const run = await openRun({
      turns: [],
      model: modelOf("@ai-sdk/gateway"),
      limits: { timeout: durationFromMs(5_000), modelRetries: 0 },
    });
    await run.work();
    expect((await run.view()).error).not.toMatch(/cannot be loaded|exports no provider/);
  });

  test.each([
    ["@ai-sdk/no-such-package", {}, "cannot be loaded"],
    ["@ai-sdk/openai-compatible", {}, "exports no provider of models"],
    ["odd", { odd: "@ai-sdk/gateway#nothing" }, "exports no provider of models"],
  ])("LOOP-11 %s %j fails the run and says why", async (provider, modules, why) => {
    const run = await openRun({ turns: [{ calls: [double(1)] }], model: modelOf(provider, modules) });
    await run.work();
    expect(await run.view()).toMatchObject({
      endReason: RunEndReason.MODEL_ERROR,
      error: expect.stringContaining(why),
    });
  });

  test("LOOP-11 other packages are the operator's to name: an agent cannot have any module loaded", () => {
    for (const name of ["commander", "./evil.ts", "/etc/passwd", "node:fs", "@ai-sdk/../x"]) {
      expect(() => modelOf(name)).toThrow("there is no model provider");
    }
  });

  test("TOOLBUS_MODEL_PROVIDERS is read, and refused with its faults", () => {
    const { modules } = readConfig({ TOOLBUS_MODEL_PROVIDERS: "house=./house.ts#house,openai=@ai-sdk/openai" }).model;
    expect([...modules]).toEqual([
      ["house", "./house.ts#house"],
      ["openai", "@ai-sdk/openai"],
    ]);
    expect(() => readConfig({ TOOLBUS_MODEL_PROVIDERS: "no equals" })).toThrow("TOOLBUS_MODEL_PROVIDERS");
  });

  const pathless = [
    "localhost:11434/v1",
    "http://model/v1?key=secret",
    "http://model/v1?",
    "http://model/v1#a",
    "model",
  ];
  test.each([...pathless, "http://user:secret@model/v1", "http://secret@model/v1"])(
    "PROD-2 an address is refused that no path can follow: %s",
    (url) => {
      expect(() => readConfig({ OPENAI_BASE_URL: url })).toThrow(
        /^(?!.*secret).*OPENAI_BASE_URL is .* without a query/s,
      );
    },
  );

  test.each(["sk-…", "sk-1 sk-2", "“sk-1”"])("a key that no header carries is refused, and not shown: %s", (key) => {
    expect(() => readConfig({ OPENAI_API_KEY: key })).toThrow(
      'OPENAI_API_KEY is "a value that is not shown here"; expected one word of ASCII characters',
    );
    expect(readConfig({ OPENAI_API_KEY: " sk-1\n" }).model.openaiApiKey).toBe("sk-1");
  });
});
