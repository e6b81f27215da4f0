import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";

/** Without instructions of its own, a model would tell a server those of its agent. */
const INSTRUCTIONS = "A tool asks for a text. Answer with that text alone.";
const MAX_CHARACTERS = 1_048_576;
/** As many as the contract of runs can say. */
const MOST_TOKENS = 2 ** 32 - 1;

/** What a model is asked for a server, of MCP's `sampling/createMessage`: text, without tools. Refuses the rest. */
export function questionFrom(paramsJson: string) {
  if (paramsJson.length > MAX_CHARACTERS)
    refuseSampling(`it takes ${paramsJson.length} characters, over the limit of ${MAX_CHARACTERS}`);
  const { messages, systemPrompt, tools, maxTokens, temperature }: Record<string, unknown> = JSON.parse(paramsJson);
  if (Array.isArray(tools) && tools.length > 0) refuseSampling("the models of agents get no tools of servers");
  const instructions = typeof systemPrompt === "string" && systemPrompt !== "" ? systemPrompt : INSTRUCTIONS;
  const modelSettings = {
    ...(typeof maxTokens === "number" && { maxOutputTokens: outputTokensFrom(maxTokens) }),
    ...(typeof temperature === "number" && { temperature }),
  };
  return {
    messages: (Array.isArray(messages) ? messages : []).map(messageFrom),
    instructions,
    agent: "",
    modelSettings,
  };
}

function messageFrom(message: unknown) {
  const { role, content } = isObject(message) ? message : {};
  const texts = [content].flat().map((block: unknown) => {
    if (isObject(block) && block.type === "text" && typeof block.text === "string") return block.text;
    return refuseSampling("models are asked with text only");
  });
  return { role: role === "assistant" ? Role.ASSISTANT : Role.USER, text: texts.join("\n") };
}

/** Servers that want no bound say a large number. */
function outputTokensFrom(maxTokens: number): number {
  if (!(maxTokens >= 1)) refuseSampling(`maxTokens is ${maxTokens}, and a text has at least one`);
  return Math.min(Math.floor(maxTokens), MOST_TOKENS);
}

interface Answered {
  readonly text: string;
  readonly model: string;
  readonly isCutOff: boolean;
}

export function answerFrom({ text, model, isCutOff }: Answered): string {
  const stopReason = isCutOff ? "maxTokens" : "endTurn";
  return JSON.stringify({ role: "assistant", content: { type: "text", text }, model, stopReason });
}

function refuseSampling(why: string): never {
  return refuse("invalid_argument", why, { reason: "INVALID_REQUEST" });
}
