import type { LanguageModelV4 } from "@ai-sdk/provider";
import { refuseLocally } from "#runtime/failure/local-failure.ts";

/** A model whose code is loaded when it is first asked: a provider takes 10 to 20 MB, and few are ever used. */
export function createLateModel(provider: string, modelId: string, open: () => Promise<LanguageModelV4>) {
  let opening: Promise<LanguageModelV4> | undefined;
  return streamingModel({ provider, modelId }, async (call) => {
    opening ??= open();
    return (await opening).doStream(call);
  });
}

export function streamingModel(
  { provider, modelId }: Pick<LanguageModelV4, "provider" | "modelId">,
  doStream: LanguageModelV4["doStream"],
): LanguageModelV4 {
  const doGenerate = () => refuseLocally("unimplemented", "models are asked for streams only");
  return { specificationVersion: "v4", provider, modelId, supportedUrls: {}, doGenerate, doStream };
}
