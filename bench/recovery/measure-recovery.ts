import type { BenchResult } from "../measuring/result.ts";
import { measureBrokerDeaths } from "./broker.ts";
import { measureOrchestratorDeaths } from "./orchestrator.ts";

/*
 * How long does a run stand still when a process dies? The times of appends are those of the server that stored them.
 */

export async function* measureRecovery(): AsyncIterable<BenchResult> {
  yield* measureOrchestratorDeaths({ deaths: 30, seed: 1 });
  yield* measureBrokerDeaths({ deaths: 10 });
}
