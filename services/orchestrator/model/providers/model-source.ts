import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Model } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { ModelConfig } from "../../config.ts";
import { createLateModel } from "./late-model.ts";
import { createPackageModel, moduleOfProvider } from "./package-models.ts";
import { refuseModel } from "./refuse-model.ts";

/** The option of a model of `openai-compatible` that says whether its server takes schemas of answers. */
export const JSON_SCHEMA = "json_schema";

/** Gives the model that an agent names; throws `failed_precondition` for a provider that is not configured. */
export type ModelSource = (model: Model) => LanguageModelV4;

export function createModelSource(config: ModelConfig): ModelSource {
  const openByProvider = new Map<string, (model: Model) => Promise<LanguageModelV4>>([
    [
      "openai-compatible",
      async ({ model, options }) => {
        const { openOpenAICompatible } = await import("./openai-compatible/openai-compatible.ts");
        return openOpenAICompatible(config, model, options?.[JSON_SCHEMA] !== false);
      },
    ],
    [
      "scripted",
      async ({ model }) => (await import("./scripted/scripted-model.ts")).createScriptedModel(config.scripts, model),
    ],
  ]);
  return (named) => {
    const { provider, model } = named;
    const open = openByProvider.get(provider);
    if (open !== undefined) return createLateModel(provider, model, () => open(named));
    const module = moduleOfProvider(provider, config.modules);
    if (module !== undefined) return createPackageModel(module, model);
    const known = [...openByProvider.keys(), ...config.modules.keys(), "packages like @ai-sdk/openai"].join(", ");
    const text = `there is no model provider ${JSON.stringify(provider)}; there are ${known}`;
    return refuseModel("model_provider_unknown", text);
  };
}
