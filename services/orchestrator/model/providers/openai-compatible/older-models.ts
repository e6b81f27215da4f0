/**
 * Models of packages that implement an older version of the AI SDK's specification, as `LanguageModelV4`.
 *
 * What the loop asks with (text, thoughts, calls, results) is written the same way in all versions, and so is what it reads
 * of a stream, but for the end of V2: its reason is a word, and its usage is counted flat.
 */

import type {
  LanguageModelV2,
  LanguageModelV2CallOptions,
  LanguageModelV2StreamPart,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { streamingModel } from "../late-model.ts";
import { refuseModel } from "../refuse-model.ts";
import { type Output, type OutputPart, withOutputs } from "../tool-outputs.ts";

export type AnyLanguageModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4;

/** Throws `failed_precondition` for what is no language model of a known version. */
export function currentModelFrom(model: AnyLanguageModel): LanguageModelV4 {
  switch (model.specificationVersion) {
    case "v4":
      return model;
    case "v3":
      return streamingModel(model, async (call) => {
        const { stream } = await model.doStream(olderCallFrom(call, "image-data") as LanguageModelV3CallOptions);
        return { stream: stream as ReadableStream<LanguageModelV4StreamPart> };
      });
    case "v2":
      return streamingModel(model, async (call) => {
        const { stream } = await model.doStream(olderCallFrom(call, "media") as LanguageModelV2CallOptions);
        const current = new TransformStream({ transform: (part, sink) => sink.enqueue(partFromV2(part)) });
        return { stream: stream.pipeThrough(current) };
      });
    default:
      return refuseModel("model_version_unknown", `a model of version ${versionOf(model)} is not understood`);
  }
}

/** `reasoning` is an option of V4; older packages have options of their own for it. Images in results have other names there. */
function olderCallFrom({ reasoning: _, ...call }: LanguageModelV4CallOptions, imageType: string): object {
  const olderPart = (part: OutputPart) => {
    if (part.type !== "file" || part.data.type !== "data") return part;
    const data = Buffer.from(part.data.data as Uint8Array).toString("base64");
    return { type: imageType, data, mediaType: part.mediaType };
  };
  const olderOutput = (parts: readonly OutputPart[]) => ({ type: "content", value: parts.map(olderPart) }) as Output;
  return { ...call, prompt: call.prompt.map((message) => withOutputs(message, olderOutput)) };
}

function partFromV2(part: LanguageModelV2StreamPart): LanguageModelV4StreamPart {
  if (part.type !== "finish") return part as LanguageModelV4StreamPart;
  const { finishReason, usage } = part;
  const unified = finishReason === "unknown" ? "other" : finishReason;
  return {
    type: "finish",
    finishReason: { unified, raw: finishReason },
    usage: {
      inputTokens: {
        total: usage.inputTokens,
        noCache: undefined,
        cacheRead: usage.cachedInputTokens,
        cacheWrite: undefined,
      },
      outputTokens: { total: usage.outputTokens, text: undefined, reasoning: usage.reasoningTokens },
    },
  };
}

function versionOf(model: object): string {
  return "specificationVersion" in model ? String(model.specificationVersion) : "none";
}
