import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";

export interface Said {
  readonly text?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly input?: string }[];
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly finishReason?: LanguageModelV4FinishReason["unified"];
  /** In place of the parts that follow from the rest. */
  readonly parts?: readonly LanguageModelV4StreamPart[];
}

export interface FakeModel extends LanguageModelV4 {
  readonly asked: LanguageModelV4CallOptions[];
}

/** A model that says what a function decides; an error that it throws is the provider's. */
export function createFakeModel(
  modelId: string,
  answer: (call: LanguageModelV4CallOptions, count: number) => Said | Promise<Said>,
): FakeModel {
  const asked: LanguageModelV4CallOptions[] = [];
  return {
    specificationVersion: "v4",
    provider: "fake",
    modelId,
    supportedUrls: {},
    asked,
    doGenerate: () => Promise.reject(new Error("the fake model only streams")),
    async doStream(call) {
      asked.push(call);
      return { stream: ReadableStream.from(partsFromSaid(await answer(call, asked.length))) };
    },
  };
}

function partsFromSaid({
  text,
  calls = [],
  inputTokens = 10,
  outputTokens = 5,
  finishReason: unified = calls.length > 0 ? "tool-calls" : "stop",
  parts,
}: Said): LanguageModelV4StreamPart[] {
  const usage = {
    inputTokens: { total: inputTokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: outputTokens, text: undefined, reasoning: undefined },
  };
  const spoken: LanguageModelV4StreamPart[] = text === undefined ? [] : [{ type: "text-delta", id: "t", delta: text }];
  const called = calls.map(({ id, name, input = "{}" }) => ({
    type: "tool-call" as const,
    toolCallId: id,
    toolName: name,
    input,
  }));
  return [...(parts ?? [...spoken, ...called]), { type: "finish", finishReason: { unified, raw: unified }, usage }];
}

/** The prompt as text, for a look at what a model was told. */
export function textOfPrompt({ prompt }: LanguageModelV4CallOptions): string {
  return JSON.stringify(prompt);
}
