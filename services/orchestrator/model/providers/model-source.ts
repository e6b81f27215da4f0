import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Model } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { refuseLocally } from "#runtime/failure/local-failure.ts";
import type { ModelConfig } from "../../config.ts";
import { fetchMendingStreams } from "./nameless-calls.ts";
import { createPackageModel, moduleOfProvider } from "./package-models.ts";
import { createScriptedModel } from "./scripted/scripted-model.ts";

/** Gives the model that an agent names; throws `failed_precondition` for a provider that is not configured. */
export type ModelSource = (model: Model) => LanguageModelV4;

export function createModelSource(config: ModelConfig): ModelSource {
  const openaiCompatible = createOpenAICompatible({
    name: "openai-compatible",
    baseURL: config.openaiBaseUrl,
    includeUsage: true,
    fetch: fetchMendingStreams,
    ...(config.openaiApiKey !== undefined && { apiKey: config.openaiApiKey }),
  });
  const openByProvider = new Map<string, (modelId: string) => LanguageModelV4>([
    ["openai-compatible", (modelId) => openaiCompatible.chatModel(modelId)],
    ["scripted", (modelId) => createScriptedModel(config.scripts, modelId)],
  ]);
  return ({ provider, model }) => {
    const open = openByProvider.get(provider);
    if (open !== undefined) return open(model);
    const module = moduleOfProvider(provider, config.modules);
    if (module !== undefined) return createPackageModel(module, model);
    const known = [...openByProvider.keys(), ...config.modules.keys(), "packages like @ai-sdk/openai"].join(", ");
    return refuseLocally(
      "failed_precondition",
      `there is no model provider ${JSON.stringify(provider)}; there are ${known}`,
      {
        kind: "model_provider_unknown",
      },
    );
  };
}
