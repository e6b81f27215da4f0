/** Loops of the AI SDK in memory, with the model and the tool of the measurement: what there is to compare with. */
import { isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { answerOrders, sayReady } from "../measuring/peer-process.ts";
import type { Plan } from "./plan.ts";
import { createPlannedModel } from "./planned-model.ts";

const repeat = tool({
  description: "Gives its arguments back",
  inputSchema: jsonSchema<{ text: string }>({
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
  }),
  execute: (args) => ({ success: true, args }),
});

async function follow(plan: Plan): Promise<number> {
  const agent = new ToolLoopAgent({
    model: createPlannedModel(new Map()),
    tools: { repeat },
    stopWhen: isStepCount(plan.turns + 1),
  });
  const { stream } = await agent.stream({ prompt: JSON.stringify(plan) });
  let deltas = 0;
  for await (const part of stream) if (part.type === "text-delta") deltas += 1;
  return deltas;
}

answerOrders(async (plans: readonly Plan[]) => {
  const startedAtMs = performance.now();
  const deltas = await Promise.all(plans.map(follow));
  return { ms: performance.now() - startedAtMs, deltas };
});
sayReady();
