/** The orchestrator as it is in production, but for its models, which are planned; gives what they saw to its parent. */
import { runService } from "#runtime/lifecycle/run-service.ts";
import { readConfig } from "../../services/orchestrator/config.ts";
import { openService } from "../../services/orchestrator/service.ts";
import type { Sample } from "./plan.ts";
import { createPlannedModel } from "./planned-model.ts";

const samplesByPlan = new Map<string, Sample[]>();
const model = createPlannedModel(samplesByPlan);

process.on("message", (question: { kind: "samples"; id: string }) => {
  process.send?.({ kind: "samples", id: question.id, samples: samplesByPlan.get(question.id) ?? [] });
  samplesByPlan.delete(question.id);
});

await runService({
  name: "orchestrator",
  readConfig,
  openService: (config, context) => openService(config, context, { modelOf: () => model }),
});
