/**
 * Models from packages, found by configuration.
 *
 * A provider package exports an instance with `languageModel(id)`, as those of the AI SDK do (`openai`, `anthropic`, …), which
 * reads its keys from its own variables. A module of the operator's may export one that is made with any settings.
 */

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { createLateModel } from "./late-model.ts";
import { type AnyLanguageModel, currentModelFrom } from "./openai-compatible/older-models.ts";
import { refuseModel } from "./refuse-model.ts";

/** Packages that an agent may name without the operator having done so. */
const knownPackages = /^@ai-sdk\/[a-z0-9-]+$/;

interface Provider {
  languageModel(modelId: string): AnyLanguageModel;
}

/** The module that a provider's name leads to; undefined for a name that is none of a package. */
export function moduleOfProvider(name: string, configured: ReadonlyMap<string, string>): string | undefined {
  return configured.get(name) ?? (knownPackages.test(name) ? name : undefined);
}

/** The model of a module, which is loaded when the model is first asked. */
export function createPackageModel(module: string, modelId: string): LanguageModelV4 {
  const open = async () => currentModelFrom((await importProvider(module)).languageModel(modelId));
  return createLateModel(module, modelId, open);
}

/** `package`, `./file.ts` or `/file.ts`, each with an optional `#export`. */
async function importProvider(module: string): Promise<Provider> {
  const [place = "", name] = module.split("#");
  const isFile = place.startsWith(".") || place.startsWith("/");
  const exports = await importModule(isFile ? pathToFileURL(resolve(place)).href : place, place);
  const candidates = name === undefined ? [exports.default, ...Object.values(exports)] : [exports[name]];
  return (
    candidates.find(isProvider) ??
    refuseModel("model_provider_invalid", `${module} exports no provider of models: nothing with languageModel(id)`)
  );
}

async function importModule(specifier: string, told: string): Promise<Record<string, unknown>> {
  try {
    return (await import(specifier)) as Record<string, unknown>;
  } catch (cause) {
    const text = `the model provider ${told} cannot be loaded: ${messageFromUnknown(cause)}`;
    return refuseModel("model_provider_missing", text, cause);
  }
}

function isProvider(value: unknown): value is Provider {
  const isHolder = (typeof value === "object" && value !== null) || typeof value === "function";
  return isHolder && "languageModel" in value && typeof value.languageModel === "function";
}
