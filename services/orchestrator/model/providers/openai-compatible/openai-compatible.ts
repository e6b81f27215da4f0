import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { type Dispatcher, getGlobalDispatcher } from "undici";
import { createRedaction } from "#runtime/content/redaction.ts";
import type { ModelConfig } from "../../../config.ts";
import { refuseModel } from "../refuse-model.ts";
import { mendingStreams } from "./mended-streams.ts";
import { keepingThoughts } from "./thoughts.ts";

/** Requests end after 300 s of silence by default; here the loop's watchdog says how long a model may be silent. */
const patiently: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
  dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler);

/** By the process' own dispatcher, which may be one for a proxy. */
const patientFetch: typeof fetch = (input, init) => {
  const dispatcher: object = getGlobalDispatcher().compose(patiently); // of the types of another release
  return fetch(input, { ...init, dispatcher } as RequestInit);
};

/**
 * Any server that speaks the protocol of OpenAI's chat completions. Throws `failed_precondition` where OpenAI itself would be asked
 * without a key.
 */
export function openOpenAICompatible(config: ModelConfig, modelId: string, takesSchemas: boolean): LanguageModelV4 {
  if (config.openaiApiKey === undefined && new URL(config.openaiBaseUrl).host === "api.openai.com") {
    const text =
      "no model is configured: set OPENAI_API_KEY, and OPENAI_BASE_URL for another server than OpenAI's, in .env or the environment of the orchestrator";
    refuseModel("model_not_configured", text);
  }
  const { openaiApiKey: apiKey } = config;
  // Some servers say in an error which key they were sent (SEC-7): what they say reaches whoever started the run.
  const redact = createRedaction(new Map(apiKey === undefined ? [] : [["OPENAI_API_KEY", apiKey]]));
  const provider = createOpenAICompatible({
    name: "openai-compatible",
    baseURL: config.openaiBaseUrl,
    includeUsage: true,
    supportsStructuredOutputs: takesSchemas, // one that is told no schema keeps none
    supportsMultiPartToolContent: true, // where the agent's model says that it takes images
    fetch: mendingStreams(patientFetch, redact),
    ...(apiKey !== undefined && { apiKey }),
  });
  return keepingThoughts(provider.chatModel(modelId));
}
