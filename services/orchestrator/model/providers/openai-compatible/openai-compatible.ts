import { createOpenAICompatible, type OpenAICompatibleProvider } from "@ai-sdk/openai-compatible";
import type { ModelConfig } from "../../../config.ts";
import { refuseModel } from "../refuse-model.ts";
import { fetchMendingStreams } from "./nameless-calls.ts";

/**
 * Any server that speaks the protocol of OpenAI's chat completions. Throws `failed_precondition` where OpenAI itself would be asked
 * without a key.
 */
export function openOpenAICompatible(config: ModelConfig): OpenAICompatibleProvider {
  if (config.openaiApiKey === undefined && new URL(config.openaiBaseUrl).host === "api.openai.com") {
    const text =
      "no model is configured: set OPENAI_API_KEY, and OPENAI_BASE_URL for another server than OpenAI's, in .env or the environment of the orchestrator";
    refuseModel("model_not_configured", text);
  }
  return createOpenAICompatible({
    name: "openai-compatible",
    baseURL: config.openaiBaseUrl,
    includeUsage: true,
    supportsMultiPartToolContent: true, // where the agent's model says that it takes images
    fetch: fetchMendingStreams,
    ...(config.openaiApiKey !== undefined && { apiKey: config.openaiApiKey }),
  });
}
