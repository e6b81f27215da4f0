import type { LanguageModelV4 } from "@ai-sdk/provider";
import { onFirstUse } from "#runtime/collections/on-first-use.ts";
import { refuseLocally } from "#runtime/failure/local-failure.ts";

/** A model whose code is loaded when it is first asked: a provider takes 10 to 20 MB, and few are ever used. */
export function createLateModel(provider: string, modelId: string, open: () => Promise<LanguageModelV4>) {
  const model = onFirstUse(open);
  return streamingModel({ provider, modelId }, async (call) => (await model()).doStream(call));
}

export function streamingModel(
  { provider, modelId }: Pick<LanguageModelV4, "provider" | "modelId">,
  doStream: LanguageModelV4["doStream"],
): LanguageModelV4 {
  const doGenerate = () => refuseLocally("unimplemented", "models are asked for streams only");
  return { specificationVersion: "v4", provider, modelId, supportedUrls: {}, doGenerate, doStream };
}
