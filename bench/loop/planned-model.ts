import type { LanguageModelV4, LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { type Plan, pieceDueAt, type Sample } from "./plan.ts";

/** A model that does what the run's input says, and remembers when it was asked. It costs the same at every turn. */
export function createPlannedModel(samplesByPlan: Map<string, Sample[]>): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "planned",
    modelId: "planned",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("the planned model only streams")),
    async doStream({ prompt }) {
      const askedAtMs = performance.now();
      const { plan, turn } = placeFromPrompt(prompt);
      const onAnswered = () => {
        if (plan.id === "") return; // nobody asks for it
        const samples = samplesByPlan.get(plan.id) ?? [];
        if (samples.length === 0) samplesByPlan.set(plan.id, samples);
        samples.push({ askedAtMs, answeredAtMs: performance.now() });
      };
      return { stream: ReadableStream.from(partsOfTurn(plan, turn, onAnswered)) };
    },
  };
}

/** After the user's message each turn is an assistant's message and one with its results. */
function placeFromPrompt(prompt: LanguageModelV4Prompt): { plan: Plan; turn: number } {
  const userIndex = prompt.findIndex(({ role }) => role === "user");
  const message = prompt[userIndex];
  const part = message?.role === "user" ? message.content[0] : undefined;
  const plan = JSON.parse(part?.type === "text" ? part.text : "{}") as Plan;
  return { plan, turn: (prompt.length - userIndex - 1) / 2 };
}

async function* partsOfTurn(
  plan: Plan,
  turn: number,
  onAnswered: () => void,
): AsyncGenerator<LanguageModelV4StreamPart> {
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "text" };
  const startedAtMs = Date.now();
  for (let index = 0; index < plan.deltas; index += 1) {
    const dueAtMs = startedAtMs + index * plan.deltaMs;
    while (plan.deltaMs > 0 && Date.now() < dueAtMs) await nextTick();
    yield { type: "text-delta", id: "text", delta: pieceDueAt(dueAtMs) };
  }
  yield { type: "text-end", id: "text" };
  const calls = turn < plan.turns ? plan.calls : 0;
  for (let index = 0; index < calls; index += 1) {
    const toolCallId = `call_${turn}_${index}`;
    const input = JSON.stringify({ text: "x".repeat(plan.argumentBytes) });
    yield { type: "tool-call", toolCallId, toolName: plan.tool, input };
  }
  onAnswered();
  const unified = calls > 0 ? "tool-calls" : "stop";
  yield {
    type: "finish",
    finishReason: { unified, raw: unified },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: plan.deltas, text: plan.deltas, reasoning: undefined },
    },
  };
}

const tickMs = 5;
let tick: Promise<void> | undefined;

/** One timer for all streams: the model is not what is measured. */
function nextTick(): Promise<void> {
  tick ??= new Promise((resolve) => {
    setTimeout(() => {
      tick = undefined;
      resolve();
    }, tickMs);
  });
  return tick;
}
