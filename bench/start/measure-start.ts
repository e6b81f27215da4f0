import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { openUp, residentMegabytes } from "./up.ts";

/*
 * How long does the command take to start the suite, or to say how it is used, and what does an idle suite hold? Everything
 * is warm: what was compiled before is in the cache.
 */

export interface StartOptions {
  readonly rounds: number;
  readonly onProgress: (message: string) => void;
}

/** After the last service is ready, MCP servers and workers of the examples still start. */
const settleMs = 5_000;

const command = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));

export async function* measureStart({ rounds, onProgress }: StartOptions): AsyncIterable<BenchResult> {
  onProgress("the help");
  const [helps, bare] = [[] as number[], [] as number[]];
  await processMs([command, "--help"]);
  for (let round = 0; round < rounds * 2; round++) {
    helps.push(await processMs([command, "--help"]));
    bare.push(await processMs(["--eval", "0"]));
  }
  yield result("help_ms", "ms", helps, bare);

  onProgress("the suite in one process");
  const together = await measureUps(rounds, []);
  yield result("up_ready_ms", "ms", together.readyMs);
  yield result("idle_rss_mb", "MB", together.residentMb);

  onProgress("the suite with a process for each service");
  const isolated = await measureUps(rounds, ["--isolate"]);
  yield result("isolated_ready_ms", "ms", isolated.readyMs);
  yield result("isolated_rss_mb", "MB", isolated.residentMb);
}

function result(metric: string, unit: string, values: readonly number[], baselines?: readonly number[]): BenchResult {
  return comparedResult({ bench: "start", metric, unit }, values, baselines);
}

/** The first start fills the cache of compiled code and does not count. */
async function measureUps(rounds: number, args: readonly string[]) {
  const readyMs: number[] = [];
  const residentMb: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    await using up = await openUp(args);
    if (round === 0) continue;
    readyMs.push(up.readyMs);
    await setTimeout(settleMs);
    residentMb.push(await residentMegabytes(up.pid));
  }
  return { readyMs, residentMb };
}

/** How long a process of Node lives that ends by itself. */
async function processMs(args: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { stdio: "ignore" });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`node ${args.join(" ")} ended with ${code}`);
  return performance.now() - startedAt;
}
