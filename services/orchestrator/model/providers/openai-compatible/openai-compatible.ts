import { createOpenAICompatible, type OpenAICompatibleProvider } from "@ai-sdk/openai-compatible";
import type { ModelConfig } from "../../../config.ts";
import { fetchMendingStreams } from "./nameless-calls.ts";

/** Any server that speaks the protocol of OpenAI's chat completions. */
export function openOpenAICompatible(config: ModelConfig): OpenAICompatibleProvider {
  return createOpenAICompatible({
    name: "openai-compatible",
    baseURL: config.openaiBaseUrl,
    includeUsage: true,
    supportsMultiPartToolContent: true, // where the agent's model says that it takes images
    fetch: fetchMendingStreams,
    ...(config.openaiApiKey !== undefined && { apiKey: config.openaiApiKey }),
  });
}
